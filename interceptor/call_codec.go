// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codecOf returns the codec of a call, by the rules of gRPC's own options. It returns nil if there is none; gRPC
// itself then reports an error.
func codecOf(opts []grpc.CallOption) (found encoding.CodecV2) {
	subtype := ""
	for _, o := range opts {
		switch o := promoted(o).(type) {
		case grpc.ForceCodecV2CallOption:
			found = o.CodecV2
		case grpc.ForceCodecCallOption:
			found = bytesCodec{o.Codec, o.Codec.Name()}
		case grpc.CustomCodecCallOption:
			found = bytesCodec{o.Codec, o.Codec.String()}
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if found != nil {
		return found
	}
	name := cmp.Or(subtype, encodingproto.Name)
	if v1 := encoding.GetCodec(name); v1 != nil {
		return bytesCodec{v1, name}
	}
	return encoding.GetCodecV2(name)
}

// bytesCodec adapts a codec of gRPC's older form.
type bytesCodec struct {
	old interface {
		Marshal(v any) ([]byte, error)
		Unmarshal(data []byte, v any) error
	}
	name string
}

func (c bytesCodec) Name() string { return c.name }

func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.old.Marshal(v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

func (c bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return c.old.Unmarshal(data.Materialize(), v)
}
