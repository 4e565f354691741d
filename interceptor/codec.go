// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec passes on what is encoded already, and leaves the rest to the codec that the call would use
// without us. So a message is encoded once, when the application sends it, and every attempt sends
// the same bytes, whatever the application does with the message afterwards.
//
// A codec serves one stream. Messages may be prepared ([grpc.PreparedMsg]) while another one is sent.
type codec struct {
	encoding.CodecV2

	name    string
	pending atomic.Pointer[pending]
}

// pending is a message that is being sent and is encoded already. Its first attempt gives gRPC the
// message itself, for interceptors, tracing and statistics; later ones have only the bytes.
type pending struct {
	message any
	encoded encoded
}

// Name is empty for the default codec: then gRPC names none in the content type, as without us.
func (c *codec) Name() string { return c.name }

// Marshal gives gRPC a reference of its own to an encoded message.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(encoded)
	if p := c.pending.Load(); !ok && p != nil && same(v, p.message) {
		m, ok = p.encoded, true
	}
	if ok {
		m.data.Ref()
		return m.data, nil
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

// same reports whether two messages are one; an interceptor further in may send another.
func same(a, b any) bool {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && w.Kind() == reflect.Pointer && v.Pointer() == w.Pointer() && v.Type() == w.Type()
}

// encoded is a message as a codec has made it, or is to read it.
type encoded struct{ data mem.BufferSlice }

// messageHeader is what gRPC sends before each message, in bytes.
const messageHeader = 5

// size is what a message takes in the replay buffer: its bytes before compression, and its header.
func (m encoded) size() int { return m.data.Len() + messageHeader }

// codecOf finds the codec that gRPC would use, by the rules of its own options, and returns ours
// around it; nil if there is none, which gRPC itself then reports.
func codecOf(opts []grpc.CallOption) *codec {
	var found *codec
	subtype := ""
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.ForceCodecV2CallOption:
			found = newCodec(o.CodecV2, o.CodecV2.Name())
		case grpc.ForceCodecCallOption:
			found = newCodec(bytesCodec{o.Codec, o.Codec.Name()}, o.Codec.Name())
		case grpc.CustomCodecCallOption:
			found = newCodec(bytesCodec{o.Codec, ""}, "")
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if found != nil {
		return found
	}
	name := subtype
	if name == "" {
		name = encodingproto.Name
	}
	if v1 := encoding.GetCodec(name); v1 != nil {
		return newCodec(bytesCodec{v1, name}, subtype)
	}
	if v2 := encoding.GetCodecV2(name); v2 != nil {
		return newCodec(v2, subtype)
	}
	return nil
}

func newCodec(c encoding.CodecV2, name string) *codec { return &codec{CodecV2: c, name: name} }

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
