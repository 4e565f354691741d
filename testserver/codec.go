// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec passes bytes on unchanged, so that scripts need no message types. Messages of
// registered services use gRPC's codec.
type codec struct{}

// request is a message of the client.
type request struct {
	into  any    // what it is decoded into, or nil
	keep  bool   // its bytes are needed
	bytes []byte // if they are needed
}

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *request:
		if v.keep {
			v.bytes = data.Materialize()
		}
		if v.into == nil {
			return nil
		}
		return c.Unmarshal(data, v.into)
	case *[]byte:
		*v = data.Materialize()
		return nil
	default:
		return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
	}
}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "testserver" }
