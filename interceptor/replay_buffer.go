// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/decision"
)

// defaultMaxReplayBytes bounds the bytes that all streams of a Retrier together keep for replay,
// without [WithMaxReplayBytes]: the limit of a client in grpc-java.
const defaultMaxReplayBytes = 16 << 20

// maxReplayBytesPerCall is gRPC's default for grpc.MaxRetryRPCBufferSize.
const maxReplayBytesPerCall = 256 << 10

// chunkSize is the size of the memory blocks that messages share, in bytes.
const chunkSize = 4 << 10

// messageHeader is the size of gRPC's prefix of each message, in bytes.
const messageHeader = 5

// replayBuffer keeps the messages that a stream has sent, for later attempts. It keeps bytes, because applications reuse
// messages, and encodes them before any interceptor sees the message. Later attempts send copies decoded from the bytes: real
// messages of the same type. It keeps only protobuf's own messages (API v2), in protobuf's encoding, even if the call's codec is
// another one.
//
// The stream's lock guards it.
type replayBuffer struct {
	messages []replayed
	chunk    []byte // the bytes of the last messages, concatenated
	over     bool   // the call is over, and nothing is kept any more

	used     int           // of limit: the bytes and a header for each message
	reserved int           // of total: for used, and up to an eighth more, so that few messages write to it
	limit    int           // of this call, in bytes
	total    *atomic.Int64 // of all calls of the Retrier
	sum      int64         // the limit of total
}

// encoded is a message in encoded form.
type encoded struct {
	data []byte
	of   protoreflect.MessageType
}

// replayed is a kept message.
type replayed struct {
	data []byte                    // never changed
	of   *protoreflect.MessageType // shared by neighbours
}

// encode encodes a message, in the memory of buffer if it fits. If the message can't be kept, it returns
// why, the cause that commits the call.
func encode(m any, buffer []byte) (e encoded, why decision.Commit) {
	if _, prepared := m.(*grpc.PreparedMsg); prepared {
		return encoded{}, decision.CommitPreparedMessage // its bytes are unknown
	}
	message, _ := m.(proto.Message)
	if e.of = protobufType(m); e.of == nil {
		return encoded{}, decision.CommitUnsendable
	}
	var err error
	if e.data, err = (proto.MarshalOptions{}).MarshalAppend(buffer[:0], message); err != nil {
		return encoded{}, decision.CommitUnsendable
	}
	return e, decision.CommitNone
}

// appendMessage keeps a message, and reports whether it fits.
func (r *replayBuffer) appendMessage(e encoded) bool {
	data, size := e.data, len(e.data)+messageHeader
	if r.over || r.used+size > r.limit || r.used+size > r.reserved && !r.reserve(size) {
		return false
	}
	r.used += size
	if len(r.chunk)+len(data) > cap(r.chunk) {
		r.chunk = make([]byte, 0, max(len(data), min(2*cap(r.chunk), chunkSize)))
	}
	begin := len(r.chunk)
	r.chunk = append(r.chunk, data...)
	r.messages = append(r.messages, replayed{r.chunk[begin:], r.typeOf(e.of)})
	return true
}

// typeOf returns the kept instance of t; most streams send only one type.
func (r *replayBuffer) typeOf(t protoreflect.MessageType) *protoreflect.MessageType {
	if n := len(r.messages); n > 0 && *r.messages[n-1].of == t {
		return r.messages[n-1].of
	}
	return new(t)
}

// decode returns a copy of a message.
func (k replayed) decode() (m any, err error) {
	made := (*k.of).New().Interface()
	return made, proto.Unmarshal(k.data, made)
}

// reserve takes size bytes from the total, and some in advance if available. It reports false if the total is used up.
func (r *replayBuffer) reserve(size int) bool {
	need := r.used + size - r.reserved
	ahead := min(r.used/8, r.limit-r.used-size)
	return r.reserveBytes(need+ahead) || ahead > 0 && r.reserveBytes(need)
}

func (r *replayBuffer) reserveBytes(n int) bool {
	if r.total.Add(int64(n)) > r.sum {
		r.total.Add(-int64(n))
		return false
	}
	r.reserved += n
	return true
}

// release drops the messages.
func (r *replayBuffer) release() {
	if r.reserved > 0 {
		r.total.Add(-int64(r.reserved))
	}
	r.messages, r.chunk, r.used, r.reserved = nil, nil, 0, 0
}

// replace drops all messages except e, and reports whether e fits.
func (r *replayBuffer) replace(e encoded) bool {
	r.release()
	return r.appendMessage(e)
}

// close drops the messages, and keeps none from now on.
func (r *replayBuffer) close() {
	r.release()
	r.over = true
}

// replayLimit returns the bytes that the call's options allow to keep.
func replayLimit(opts []grpc.CallOption) int {
	limit := maxReplayBytesPerCall
	for _, o := range opts {
		if o, ok := promoted(o).(grpc.MaxRetryRPCBufferSizeCallOption); ok {
			limit = o.MaxRetryRPCBufferSize
		}
	}
	return limit
}
