// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// clearReply empties what a failed attempt may have left in the reply: gRPC decodes a message
// before it reads the status, and codecs other than protobuf's may add to what they find.
func clearReply(reply any) {
	switch m := reply.(type) {
	case proto.Message:
		proto.Reset(m)
	case interface{ Reset() }: // messages of older protobuf generators
		m.Reset()
	default:
		if v := reflect.ValueOf(reply); v.Kind() == reflect.Pointer && !v.IsNil() {
			v.Elem().SetZero()
		}
	}
}
