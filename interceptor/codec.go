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

// codec passes on what is encoded already, and leaves the rest to the codec that the call would use
// without us; what that makes of a message is kept for replay. So a message is encoded once, when the
// application sends it, and every attempt sends the same bytes, whatever the application does with the
// message afterwards. The first attempt gives gRPC the message itself, for interceptors, tracing and
// statistics; later ones have only the bytes.
//
// A codec serves one stream. Messages may be prepared ([grpc.PreparedMsg]) while another one is sent.
type codec struct {
	encoding.CodecV2

	name   string
	stream *stream
}

// Name is empty for the default codec: then gRPC names none in the content type, as without us.
func (c *codec) Name() string { return c.name }

// Marshal gives gRPC a reference of its own to an encoded message.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(encoded); ok {
		m.data.Ref()
		return m.data, nil
	}
	if s := c.stream; s.sending.claim(v) {
		data, encoded, err := s.encoder.encode(v)
		if !encoded {
			data, err = c.CodecV2.Marshal(v)
		}
		s.keep(data, err)
		return data, err
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal keeps a message for later if it is to be encoded.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*encoded); ok {
		data.Ref()
		m.data = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// encoded is a message as a codec has made it, or is to read it.
type encoded struct{ data mem.BufferSlice }

// codecOf finds the codec that gRPC would use, by the rules of its own options, and the name that it
// would give it; nil if there is none, which gRPC itself then reports.
func codecOf(opts []grpc.CallOption) (found encoding.CodecV2, name string) {
	subtype := ""
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.ForceCodecV2CallOption:
			found, name = o.CodecV2, o.CodecV2.Name()
		case grpc.ForceCodecCallOption:
			found, name = bytesCodec{o.Codec, o.Codec.Name()}, o.Codec.Name()
		case grpc.CustomCodecCallOption:
			found, name = bytesCodec{o.Codec, ""}, ""
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if found != nil {
		return found, name
	}
	name = cmp.Or(subtype, encodingproto.Name)
	if v1 := encoding.GetCodec(name); v1 != nil {
		return bytesCodec{v1, name}, subtype
	}
	return encoding.GetCodecV2(name), subtype
}

// bytesCodec makes a codec of one in gRPC's older form.
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
