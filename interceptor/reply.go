// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// kind is what replies are made of. It is read off the caller's reply before an attempt decodes into
// that.
type kind struct {
	message protoreflect.MessageType // of protobuf
	other   reflect.Type             // of other codecs
}

func kindOf(reply any) kind {
	if m, ok := reply.(proto.Message); ok {
		return kind{message: m.ProtoReflect().Type()}
	}
	return kind{other: reflect.TypeOf(reply)}
}

// copies reports whether there can be a second reply.
func (k kind) copies() bool {
	return k.message != nil || k.other != nil && k.other.Kind() == reflect.Pointer
}

// fresh is an empty reply; nil if none can be made.
func (k kind) fresh() any {
	switch {
	case k.message != nil:
		return k.message.New().Interface()
	case k.other != nil && k.other.Kind() == reflect.Pointer:
		return reflect.New(k.other.Elem()).Interface()
	default:
		return nil
	}
}

// copyReply puts src, which nobody else has, in place of what is in dst, of the same type.
func copyReply(dst, src any) {
	if to, ok := dst.(proto.Message); ok {
		from, _ := src.(proto.Message) // the same type
		proto.Reset(to)
		proto.Merge(to, from)
		return
	}
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem())
}

// clearReply empties what a failed attempt may have left in the reply: gRPC decodes a message
// before it reads the status, and codecs other than protobuf's may add to what they find.
//
// It sets a reply that is no message to its zero value: what the caller had put there is gone.
func clearReply(reply any) {
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	switch m := reply.(type) {
	case proto.Message:
		proto.Reset(m)
	case interface{ Reset() }: // messages of older protobuf generators
		m.Reset()
	default:
		v.Elem().SetZero()
	}
}
