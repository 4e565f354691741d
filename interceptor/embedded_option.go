// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"sync"

	"google.golang.org/grpc"
)

// promoted returns the gRPC option that a call option acts as. Only gRPC can declare the methods of a
// [grpc.CallOption], so every other type has them from an embedded field: a gRPC option, or an
// interface that holds one. It returns nil if the field cannot be read.
func promoted(option grpc.CallOption) grpc.CallOption {
	switch option.(type) {
	case grpc.StaticMethodCallOption, grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption,
		grpc.FailFastCallOption, grpc.PerRPCCredsCallOption:
		return option // fast path for the most usual
	case nil:
		return grpc.EmptyCallOption{} // gRPC panics
	}
	v := reflect.ValueOf(option)
	e := embeddingOf(v.Type())
	if e.pointer {
		v = v.Elem()
	}
	switch {
	case e.hidden:
		return nil
	case !v.IsValid():
		return grpc.EmptyCallOption{} // a nil pointer: gRPC panics
	case e.field != nil:
		inner, _ := reflect.TypeAssert[grpc.CallOption](v.FieldByIndex(e.field))
		return promoted(inner)
	case e.pointer:
		inner, _ := reflect.TypeAssert[grpc.CallOption](v)
		return inner
	}
	return option
}

// unwrapped returns the option that an option of a user's type holds in an embedded interface: it may be one of
// this package. It returns every other option itself.
func unwrapped(option grpc.CallOption) grpc.CallOption {
	switch option.(type) {
	case grpc.StaticMethodCallOption, grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption,
		grpc.FailFastCallOption, grpc.PerRPCCredsCallOption, policyOption, disableOption, idempotentOption, keyOption, nil:
		return option // fast path for the most usual
	}
	v := reflect.ValueOf(option)
	e := embeddingOf(v.Type())
	if e.pointer {
		v = v.Elem()
	}
	if e.field == nil || e.hidden || !v.IsValid() || v.Type().FieldByIndex(e.field).Type.Kind() != reflect.Interface {
		return option
	}
	if inner, _ := reflect.TypeAssert[grpc.CallOption](v.FieldByIndex(e.field)); inner != nil {
		return unwrapped(inner)
	}
	return option
}

// embedding describes the source of the methods of a call option type.
type embedding struct {
	pointer bool  // the options are pointers
	field   []int // the embedded one, as for [reflect.Value.FieldByIndex]; nil for gRPC's own types
	hidden  bool  // it cannot be read from outside its package
}

// embeddings caches the embedding of each type: reflect.Type → *embedding.
var embeddings sync.Map

func embeddingOf(t reflect.Type) *embedding {
	known, _ := embeddings.Load(t)
	if e, ok := known.(*embedding); ok {
		return e
	}
	e := newEmbedding(t)
	embeddings.Store(t, e)
	return e
}

func newEmbedding(t reflect.Type) *embedding {
	e := &embedding{pointer: t.Kind() == reflect.Pointer}
	if e.pointer {
		t = t.Elem()
	}
	if ofGRPC(t) {
		return e
	}
	e.hidden = true
	if t.Kind() != reflect.Struct {
		return e
	}
	for _, f := range reflect.VisibleFields(t) {
		declares := f.Type.Kind() == reflect.Interface || ofGRPC(f.Type) || f.Type.Kind() == reflect.Pointer && ofGRPC(f.Type.Elem())
		if !f.Anonymous || !declares || !f.Type.Implements(reflect.TypeFor[grpc.CallOption]()) ||
			e.field != nil && len(e.field) <= len(f.Index) {
			continue
		}
		e.field, e.hidden = f.Index, !f.IsExported() || behindPointer(t, f.Index)
	}
	return e
}

// ofGRPC reports whether a type is one of gRPC's, which declare the methods of a call option.
func ofGRPC(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[grpc.CallOption]().PkgPath() }

// behindPointer reports whether the way to a field has a pointer, which may be nil.
func behindPointer(t reflect.Type, field []int) bool {
	for i := 1; i < len(field); i++ {
		if t.FieldByIndex(field[:i]).Type.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}
