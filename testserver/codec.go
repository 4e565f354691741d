// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec passes bytes on unchanged, so that scripts need no message types. Messages of
// registered services use gRPC's own codec.
type codec struct{}

// request is a message of the client.
type request struct {
	bytes []byte
	skip  bool // the bytes are not needed
}

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*request); ok {
		if !r.skip {
			r.bytes = data.Materialize()
		}
		return nil
	}
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "testserver" }
