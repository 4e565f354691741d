// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"slices"
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

// blockSize is how many places of messages share memory.
const blockSize = 256

// messageHeader is the size of gRPC's prefix of each message, in bytes.
const messageHeader = 5

// request is what the application has sent, and what of it attempts are sent.
//
//	requestOpen ── CloseSend ──► requestClosed ──┐
//	     └───────────────────────────────────────┴── a cut stream is resumed ──► requestReplaced
//
// The driver's lock guards it.
type request struct {
	buffer   replayBuffer
	messages int // that every attempt is sent
	state    requestState
}

type requestState uint8

const (
	requestOpen requestState = iota
	requestClosed
	requestReplaced // by the request for the rest, and closed: what the application sends now is too late
)

// closed reports whether attempts are closed after the messages.
func (r *request) closed() bool { return r.state != requestOpen }

// keep keeps a message, and reports whether it fits.
func (r *request) keep(e *encoded) bool {
	kept := r.buffer.appendMessage(e)
	if kept {
		r.messages++
	}
	return kept
}

// replace makes e the whole request, and reports whether it fits.
func (r *request) replace(e *encoded) bool {
	replaced := r.buffer.replace(e)
	if replaced {
		r.messages, r.state = 1, requestReplaced
	}
	return replaced
}

// replayBuffer keeps the messages that a stream has sent, for later attempts. It keeps bytes, because applications reuse
// messages, and encodes them before any interceptor sees the message. Later attempts send copies decoded from the bytes: real
// messages of the same type. It keeps only protobuf's own messages (API v2), in protobuf's encoding, even if the call's codec is
// another one.
//
// The driver's lock guards it.
type replayBuffer struct {
	messages [][]place                  // in blocks, all but the last of blockSize
	chunks   [][]byte                   // the bytes of the messages, one after the other
	types    []protoreflect.MessageType // most streams send one
	over     bool                       // the call is over, and nothing is kept any more
	first    struct {                   // space for one message
		message [1]place
		block   [1][]place
		chunk   [1][]byte
		of      [1]protoreflect.MessageType
	}

	used     int           // of limit: the bytes and a header for each message
	reserved int           // of total: for used, and up to an eighth more, so that few messages write to it
	limit    int           // of this call, in bytes
	total    *atomic.Int64 // of all calls of the Retrier
	sum      int64         // the limit of total
}

// encoded is a message in encoded form.
type encoded struct {
	data  []byte // never changes
	of    protoreflect.MessageType
	chunk []byte // ends with data
}

// place is where a kept message is: without pointers, because a stream may keep many small ones.
type place struct{ chunk, begin, end, of uint32 }

// encoder encodes the messages that a stream sends.
type encoder struct {
	own     reflect.Type  // of the last message, if it is protobuf's own
	chunk   []byte        // the newest one that messages share
	message proto.Message // measured, and not yet encoded
	of      protoreflect.MessageType
}

// encode encodes a message into the newest chunk, or a new one. If the message can't be kept, it returns the cause that commits the call,
// and e is empty.
func (c *encoder) encode(m any, e *encoded) decision.Commit {
	size, why := c.measure(m)
	if why == decision.CommitNone {
		why = c.encodeMeasured(size, e)
	}
	return why
}

// measure returns the size of a message, for [encoder.encodeMeasured], or the cause that commits the call because it can't be kept.
func (c *encoder) measure(m any) (size int, why decision.Commit) {
	if _, prepared := m.(*grpc.PreparedMsg); prepared {
		return 0, decision.CommitPreparedMessage // its bytes are unknown
	}
	c.message, _ = m.(proto.Message)
	switch t := reflect.TypeOf(m); {
	case t != nil && t == c.own:
		c.of = c.message.ProtoReflect().Type()
	default:
		c.of = protobufType(m)
		if c.of == nil {
			return 0, decision.CommitUnsendable
		}
		c.own = t
	}
	return proto.Size(c.message), decision.CommitNone
}

// encodeMeasured encodes the message that was measured last.
func (c *encoder) encodeMeasured(size int, e *encoded) decision.Commit {
	before := c.chunk
	if len(before)+size > cap(before) {
		before = make([]byte, 0, max(size, min(2*cap(before), chunkSize)))
	}
	chunk, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(before, c.message)
	c.message = nil
	if err != nil {
		return decision.CommitUnsendable
	}
	*e = encoded{chunk[len(before):], c.of, chunk}
	if cap(chunk) <= chunkSize { // a large one would stay as long as the stream
		c.chunk = chunk
	}
	return decision.CommitNone
}

// begin returns where the memory of b begins, or nil.
func begin(b []byte) *byte {
	if cap(b) == 0 {
		return nil
	}
	return &b[:1][0]
}

// fits reports whether a message of so many bytes would be kept now.
func (r *replayBuffer) fits(size int) bool {
	size += messageHeader
	need := int64(r.used + size - r.reserved)
	return r.used+size <= r.limit && (need <= 0 || r.total.Load()+need <= r.sum)
}

// appendMessage keeps a message, and reports whether it fits.
func (r *replayBuffer) appendMessage(e *encoded) bool {
	size := len(e.data) + messageHeader
	if r.over || r.used+size > r.limit || r.used+size > r.reserved && !r.reserve(size) {
		return false
	}
	r.used += size
	if r.messages == nil {
		r.first.block[0] = r.first.message[:0]
		r.messages, r.chunks, r.types = r.first.block[:], r.first.chunk[:0], r.first.of[:0]
	}
	chunk, block, end := len(r.chunks)-1, len(r.messages)-1, len(e.chunk)
	if chunk < 0 || begin(r.chunks[chunk]) != begin(e.chunk) {
		r.chunks = append(r.chunks, nil)
		chunk++
	}
	if len(r.messages[block]) == blockSize {
		r.messages = append(r.messages, make([]place, 0, blockSize))
		block++
	}
	r.chunks[chunk] = e.chunk
	r.messages[block] = append(r.messages[block], place{uint32(chunk), uint32(end - len(e.data)), uint32(end), r.typeOf(e.of)})
	return true
}

// typeOf returns the index of t.
func (r *replayBuffer) typeOf(t protoreflect.MessageType) uint32 {
	i := slices.Index(r.types, t)
	if i < 0 {
		i = len(r.types)
		r.types = append(r.types, t)
	}
	return uint32(i)
}

// message returns a kept message, whose bytes never change.
func (r *replayBuffer) message(i int) encoded {
	p := r.messages[i/blockSize][i%blockSize]
	return encoded{data: r.chunks[p.chunk][p.begin:p.end:p.end], of: r.types[p.of]}
}

// decode returns a copy of a message.
func (e encoded) decode() (m any, err error) {
	made := e.of.New().Interface()
	return made, proto.Unmarshal(e.data, made)
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
	r.messages, r.chunks, r.types, r.used, r.reserved = nil, nil, nil, 0, 0
	r.first.block[0], r.first.chunk[0] = nil, nil
}

// replace drops all messages except e, and reports whether e fits.
func (r *replayBuffer) replace(e *encoded) bool {
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
