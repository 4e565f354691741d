// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"

	"google.golang.org/grpc"
)

// DefaultMaxReplayBytes is how much all streams of a Retrier together may keep for replay, in bytes,
// unless [WithMaxReplayBytes] says otherwise: what grpc-java allows a client.
const DefaultMaxReplayBytes = 16 << 20

// maxReplayBytesPerCall is gRPC's own default for grpc.MaxRetryRPCBufferSize.
const maxReplayBytesPerCall = 256 << 10

// replay is what a stream has sent and may have to send again. It is guarded by its stream's lock,
// except for total.
type replay struct {
	messages []encoded
	closed   bool // the application has closed its side

	bytes int
	limit int           // of this call
	total *atomic.Int64 // of all calls of the Retrier
	sum   int64         // limit of total
}

// add keeps a message, or reports false if it does not fit.
func (r *replay) add(m encoded) bool {
	size := m.size()
	if r.bytes+size > r.limit {
		return false
	}
	if r.total.Add(int64(size)) > r.sum {
		r.total.Add(-int64(size))
		return false
	}
	r.bytes += size
	r.messages = append(r.messages, m)
	return true
}

// release forgets the messages.
func (r *replay) release() {
	for _, m := range r.messages {
		m.data.Free()
	}
	r.total.Add(-int64(r.bytes))
	r.messages, r.bytes = nil, 0
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
