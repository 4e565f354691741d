// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// copyReply puts src, which nobody else has, in place of what is in dst, of the same type.
func copyReply(dst, src any) {
	if to, ok := dst.(proto.Message); ok && protobufType(dst) != nil {
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

// resetMessage calls Reset. Of a type that embeds a message by a pointer or an interface, that panics while the message
// is nil, and then there is nothing to clear.
func resetMessage(m interface{ Reset() }) {
	defer func() {
		if protobufType(m) == nil {
			_ = recover()
		}
	}()
	m.Reset()
}
