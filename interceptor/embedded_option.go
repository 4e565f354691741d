// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"sync"

	"google.golang.org/grpc"
)

// underlying returns the option that a call option acts as: one of gRPC's or of this package. Only gRPC can declare the methods of a
// [grpc.CallOption], so a user's type has them from an embedded field. It returns nil if the option in that field is a user's, too, or
// can't be read.
func underlying(option grpc.CallOption) grpc.CallOption {
	switch option.(type) {
	case grpc.StaticMethodCallOption, grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption,
		grpc.FailFastCallOption, grpc.PerRPCCredsCallOption, policyOption, disableOption, idempotentOption, keyOption:
		return option // fast path for the most usual
	}
	v := reflect.ValueOf(option)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return grpc.EmptyCallOption{} // gRPC panics
	}
	if !known(v.Type()) {
		index := embedsAt(v.Type())
		if index < 0 {
			return nil
		}
		v = v.Field(index)
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() {
			return grpc.EmptyCallOption{} // gRPC panics
		}
		if !known(v.Type()) {
			return nil
		}
	}
	inner, _ := reflect.TypeAssert[grpc.CallOption](v)
	return inner
}

// known reports whether a type is one of gRPC's or of this package.
func known(t reflect.Type) bool {
	path := t.PkgPath()
	return path == reflect.TypeFor[grpc.CallOption]().PkgPath() || path == reflect.TypeFor[Retrier]().PkgPath()
}

// embeddings caches the results of embedsAt: reflect.Type → int.
var embeddings sync.Map

// embedsAt returns the index of the exported field that a struct embeds and that is a call option, or -1.
func embedsAt(t reflect.Type) int {
	if at, ok := embeddings.Load(t); ok {
		index, _ := at.(int)
		return index
	}
	index := -1
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if f := t.Field(i); f.Anonymous && f.IsExported() && f.Type.Implements(reflect.TypeFor[grpc.CallOption]()) {
			index = i
			break
		}
	}
	embeddings.Store(t, index)
	return index
}
