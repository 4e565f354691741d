// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// encoder encodes small messages that are kept as gRPC's own codec for protobuf does, but many into one
// piece of memory. That saves three allocations a message, which is about what it costs to keep it. It
// belongs to whoever has claimed the message.
type encoder struct {
	able  bool // the codec is gRPC's own
	count int
	bytes int
	room  []byte
	slots []slot
}

// slot holds an encoded message in the form that gRPC takes.
type slot struct {
	data   mem.SliceBuffer
	buffer [1]mem.Buffer
}

// roomMost is how much memory messages share at most, in bytes: what is kept of one keeps the others too.
const roomMost = 4 << 10

// ownCodec reports whether a codec is the one that gRPC registers for protobuf; programs may register their
// own in its place.
func ownCodec(c encoding.CodecV2) bool {
	t := reflect.TypeOf(c)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == protoCodecPackage
}

const protoCodecPackage = "google.golang.org/grpc/encoding/" + encodingproto.Name

// encode returns a message as gRPC's codec would encode it; false if it is better left to that: the first
// two, since most streams send no more, and what gRPC has a buffer pool for.
func (e *encoder) encode(v any) (data mem.BufferSlice, ok bool, err error) {
	m, ok := v.(proto.Message)
	if e.count++; !ok || !e.able || e.count <= 2 {
		return nil, false, nil
	}
	size := proto.Size(m)
	if !mem.IsBelowBufferPoolingThreshold(size) {
		return nil, false, nil
	}
	if len(e.room) < size {
		e.room = make([]byte, max(size, min(roomMost, e.bytes/2)))
	}
	if len(e.slots) == 0 {
		e.slots = make([]slot, min(e.count, len(block{})))
	}
	p := &e.slots[0]
	if p.data, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(e.room[:0:size], m); err != nil {
		return nil, true, err
	}
	p.buffer[0] = &p.data
	e.room, e.slots = e.room[size:], e.slots[1:]
	e.bytes += size
	return p.buffer[:], true, nil
}
