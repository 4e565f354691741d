// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

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
