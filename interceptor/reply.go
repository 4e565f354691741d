// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// copyReply overwrites dst with src, of the same type. src must not be used again.
func copyReply(dst, src any) {
	if to, ok := dst.(proto.Message); ok && protobufType(dst) != nil {
		from, _ := src.(proto.Message) // of the same type
		proto.Reset(to)
		proto.Merge(to, from)
		return
	}
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem())
}

// clearReply clears a reply after a failed attempt: gRPC decodes a message
// before it reads the status, and codecs other than protobuf's may merge into existing contents.
//
// It sets a reply that isn't a message to its zero value, and so drops the caller's own contents.
func clearReply(reply any) {
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	if m, ok := reply.(interface{ Reset() }); ok {
		resetMessage(m)
		return
	}
	if m, ok := reply.(proto.Message); ok {
		proto.Reset(m)
		return
	}
	v.Elem().SetZero()
}

// resetMessage calls Reset. For a type that embeds a message by pointer or interface, Reset panics if the message
// is nil; then there is nothing to clear.
func resetMessage(m interface{ Reset() }) {
	defer func() {
		if protobufType(m) == nil {
			_ = recover()
		}
	}()
	m.Reset()
}
