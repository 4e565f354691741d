// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"reflect"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// messageCodec takes the place of a call's codec, if that is not gRPC's own. It is for messages that stagger can't copy.
//
//   - A request is encoded once, and every attempt sends the same bytes, as with gRPC's own retries: an [encoding.CodecV2] may give
//     away the buffers of the message, as proxies do, and gRPC frees them when they are sent.
//   - It notes whether an attempt has received a message into the application's reply.
//
// It is safe for concurrent use by parallel attempts.
type messageCodec struct {
	codec
	name  string // for the content-type header, as without messageCodec
	gives bool   // it may give away the buffers of a message

	mu       sync.Mutex // guards all below
	request  any        // to be encoded once; nil: none
	encoded  bool
	bytes    mem.BufferSlice // of the request; owned
	reply    atomic.Value    // of replyInto
	received atomic.Bool     // something was decoded into reply
}

// codec is what gRPC needs of a codec.
type codec interface {
	Marshal(v any) (mem.BufferSlice, error)
	Unmarshal(data mem.BufferSlice, v any) error
}

// replyInto is a message of the application's.
type replyInto struct{ message any }

// newMessageCodec returns the codec that options choose, by the rules of gRPC's options, or nil if there is none.
func newMessageCodec(opts []grpc.CallOption) *messageCodec {
	var c *messageCodec
	subtype := ""
	for _, o := range opts {
		switch o := promoted(o).(type) {
		case grpc.ForceCodecV2CallOption:
			c = nil // as gRPC takes a nil codec
			if o.CodecV2 != nil {
				c = &messageCodec{codec: o.CodecV2, name: o.CodecV2.Name(), gives: true}
			}
		case grpc.ForceCodecCallOption:
			c = &messageCodec{codec: bytesCodec{o.Codec}, name: o.Codec.Name()}
		case grpc.CustomCodecCallOption:
			c = &messageCodec{codec: bytesCodec{o.Codec}}
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if c != nil {
		return c
	}
	name := cmp.Or(subtype, encodingproto.Name) // gRPC itself sets the header
	if v1 := encoding.GetCodec(name); v1 != nil {
		return &messageCodec{codec: bytesCodec{v1}}
	}
	if v2 := encoding.GetCodecV2(name); v2 != nil {
		return &messageCodec{codec: v2, gives: true}
	}
	return nil
}

// Name implements [encoding.CodecV2].
func (c *messageCodec) Name() string { return c.name }

// Marshal implements [encoding.CodecV2].
func (c *messageCodec) Marshal(v any) (mem.BufferSlice, error) {
	if !c.gives {
		return c.codec.Marshal(v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == nil || !identical(reflect.ValueOf(v), reflect.ValueOf(c.request)) {
		return c.codec.Marshal(v)
	}
	if !c.encoded {
		data, err := c.codec.Marshal(v)
		if err != nil {
			return nil, err
		}
		c.encoded, c.bytes = true, data
	}
	c.bytes.Ref()
	return append(mem.BufferSlice(nil), c.bytes...), nil
}

// Unmarshal implements [encoding.CodecV2].
func (c *messageCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if into, ok := c.reply.Load().(replyInto); ok && identical(reflect.ValueOf(v), reflect.ValueOf(into.message)) {
		c.received.Store(true)
	}
	return c.codec.Unmarshal(data, v)
}

// encodeOnce makes every attempt send what the first one does, as long as it sends m. nil drops the bytes.
func (c *messageCodec) encodeOnce(m any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes.Free()
	c.request, c.encoded, c.bytes = m, false, nil
}

// watch makes [messageCodec.received] be about a message of the application's.
func (c *messageCodec) watch(reply any) {
	c.reply.Store(replyInto{reply})
	c.received.Store(false)
}

// bytesCodec is a codec of gRPC's older kinds, whose bytes are nobody else's.
type bytesCodec struct {
	of interface {
		Marshal(v any) ([]byte, error)
		Unmarshal(data []byte, v any) error
	}
}

func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.of.Marshal(v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

func (c bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return c.of.Unmarshal(data.Materialize(), v)
}

// identical reports whether two messages are one: they have the same pointers, whatever is behind these.
func identical(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid() && !a.IsValid()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Slice:
		return a.UnsafePointer() == b.UnsafePointer() && a.Len() == b.Len()
	case reflect.Interface:
		return identical(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !identical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

// shares reports whether a shallow copy of a value has a part in common with it that can be changed.
func shares(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.UnsafePointer:
		return !v.IsNil()
	case reflect.Slice:
		return v.Cap() > 0
	case reflect.Interface:
		return !v.IsNil() && shares(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if shares(field) {
				return true
			}
		}
		return false
	case reflect.Array:
		for i := range v.Len() {
			if shares(v.Index(i)) {
				return true
			}
		}
		return false
	default:
		return false
	}
}
