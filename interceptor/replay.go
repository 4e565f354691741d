// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// DefaultMaxReplayBytes is how much all streams of a Retrier together may keep for replay, in bytes,
// unless [WithMaxReplayBytes] says otherwise: what grpc-java allows a client.
const DefaultMaxReplayBytes = 16 << 20

// maxReplayBytesPerCall is gRPC's own default for grpc.MaxRetryRPCBufferSize.
const maxReplayBytesPerCall = 256 << 10

// messageHeader is what gRPC sends before each message, in bytes.
const messageHeader = 5

// replay is what a stream has sent and may have to send again. It is guarded by its stream's lock,
// except for total.
type replay struct {
	length int
	first  [2]*mem.Buffer // all that most streams send before they receive
	last   *block         // where the next message goes, if not there
	blocks []*block
	pooled bool // some messages must be freed
	closed bool // the application has closed its side

	bytes    int
	reserved int           // of total: for bytes, and for up to an eighth more, so that few messages write to it
	limit    int           // of bytes
	total    *atomic.Int64 // of all calls of the Retrier
	sum      int64         // limit of total
}

// block is a step in which a replay grows.
type block [64]*mem.Buffer

// blocks that are not in use are empty.
var blocks = sync.Pool{New: func() any { return new(block) }}

// add keeps a message, or reports false if it does not fit. It takes its bytes before compression, and its
// header.
func (r *replay) add(data mem.BufferSlice) bool {
	size := data.Len() + messageHeader
	if r.bytes+size > r.limit || r.bytes+size > r.reserved && !r.reserve(size) {
		return false
	}
	if len(data) != 1 { // as no codec of gRPC's does it
		data = mem.BufferSlice{mem.SliceBuffer(data.Materialize())}
	}
	switch data[0].(type) {
	case mem.SliceBuffer, *mem.SliceBuffer: // the garbage collector frees them
	default:
		data.Ref()
		r.pooled = true
	}
	*r.next() = &data[0]
	r.bytes += size
	r.length++
	return true
}

// next is where the next message goes.
func (r *replay) next() **mem.Buffer {
	if r.length < len(r.first) {
		return &r.first[r.length]
	}
	i := (r.length - len(r.first)) % len(block{})
	if i == 0 {
		r.last = blocks.Get().(*block) //nolint:errcheck,forcetypeassert // the pool holds nothing else
		r.blocks = append(r.blocks, r.last)
	}
	return &r.last[i]
}

// at is the i-th message.
func (r *replay) at(i int) encoded {
	if i < len(r.first) {
		return encoded{mem.BufferSlice{*r.first[i]}}
	}
	i -= len(r.first)
	return encoded{mem.BufferSlice{*r.blocks[i/len(block{})][i%len(block{})]}}
}

// reserve takes room for size bytes more, and for some of those that may follow, if there is.
func (r *replay) reserve(size int) bool {
	need := r.bytes + size - r.reserved
	ahead := min(r.bytes/8, r.limit-r.bytes-size)
	return r.take(need+ahead) || ahead > 0 && r.take(need)
}

func (r *replay) take(n int) bool {
	if r.total.Add(int64(n)) > r.sum {
		r.total.Add(-int64(n))
		return false
	}
	r.reserved += n
	return true
}

// release forgets the messages.
func (r *replay) release() {
	for i := 0; r.pooled && i < r.length; i++ {
		r.at(i).data.Free()
	}
	for _, b := range r.blocks {
		*b = block{}
		blocks.Put(b)
	}
	if r.reserved > 0 {
		r.total.Add(-int64(r.reserved))
	}
	r.first, r.last, r.blocks = [2]*mem.Buffer{}, nil, nil
	r.length, r.bytes, r.reserved, r.pooled = 0, 0, 0, false
}

// replayLimit is what the call's options allow.
func replayLimit(opts []grpc.CallOption) int {
	limit := maxReplayBytesPerCall
	for _, o := range opts {
		if o, ok := o.(grpc.MaxRetryRPCBufferSizeCallOption); ok {
			limit = o.MaxRetryRPCBufferSize
		}
	}
	return limit
}
