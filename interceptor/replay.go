// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
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

// chunkSize is the largest size of the memory blocks that messages share, in bytes.
const chunkSize = 8 << 10

// messageHeader is the size of gRPC's prefix of each message, in bytes.
const messageHeader = 5

// replayLog is what a stream has sent, for later attempts. It keeps bytes, because applications reuse messages, and encodes them before
// any interceptor sees the message. Later attempts send copies decoded from the bytes: real messages of the same type. It keeps only
// protobuf's own messages (API v2), in protobuf's encoding, even if the call's codec is another one.
//
// The stream's lock guards all but limit.
type replayLog struct {
	messages []encoded
	closed   bool          // after the messages
	used     int           // of limit: the bytes and a header for each message
	limit    int           // of this call, in bytes
	total    *atomic.Int64 // used, of all calls of the Retrier
	most     int64         // the limit of total
}

// encoded is a message in encoded form. The bytes never change.
type encoded struct {
	data []byte
	of   protoreflect.MessageType // nil: not encoded
}

func (l *replayLog) init(r *Retrier, opts []grpc.CallOption) {
	l.limit, l.total, l.most = replayLimit(opts), &r.replayed, r.maxReplayed
}

// keep keeps a message, and reports whether it fits.
func (l *replayLog) keep(e *encoded) bool {
	size := len(e.data) + messageHeader
	if l.used+size > l.limit || l.total.Add(int64(size)) > l.most {
		if l.used+size <= l.limit {
			l.total.Add(int64(-size))
		}
		return false
	}
	l.used += size
	l.messages = append(l.messages, *e)
	return true
}

// release drops the messages.
func (l *replayLog) release() {
	l.total.Add(int64(-l.used))
	l.messages, l.used = nil, 0
}

// decode returns a copy of a message.
func (e encoded) decode() (m any, err error) {
	made := e.of.New().Interface()
	return made, proto.Unmarshal(e.data, made)
}

// encoder encodes the messages that a stream sends.
type encoder struct {
	own   reflect.Type // of the last message, if it is protobuf's own
	chunk []byte       // the newest block that messages share
}

// encode encodes a message of at most limit bytes. Otherwise it returns why it can't be kept, which commits the call, and e is empty.
func (c *encoder) encode(m any, limit int, e *encoded) decision.Commit {
	if _, prepared := m.(*grpc.PreparedMsg); prepared {
		return decision.CommitPreparedMessage // its bytes are unknown
	}
	message, _ := m.(proto.Message)
	if t := reflect.TypeOf(m); t == nil || t != c.own {
		if protobufType(m) == nil {
			return decision.CommitUnsendable
		}
		c.own = t
	}
	size := proto.Size(message)
	if size+messageHeader > limit {
		return decision.CommitBufferFull
	}
	before := c.chunk
	if len(before)+size > cap(before) {
		before = make([]byte, 0, max(size, min(2*cap(before), chunkSize)))
	}
	chunk, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(before, message)
	if err != nil {
		return decision.CommitUnsendable
	}
	if cap(chunk) <= chunkSize { // a large one would stay as long as the stream
		c.chunk = chunk
	}
	*e = encoded{chunk[len(before):len(chunk):len(chunk)], message.ProtoReflect().Type()}
	return decision.CommitNone
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
