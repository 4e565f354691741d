// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/decision"
)

// defaultMaxReplayBytes is how much all streams of a Retrier together may keep for replay, in bytes,
// unless [WithMaxReplayBytes] says otherwise: what grpc-java allows a client.
const defaultMaxReplayBytes = 16 << 20

// maxReplayBytesPerCall is gRPC's own default for grpc.MaxRetryRPCBufferSize.
const maxReplayBytesPerCall = 256 << 10

// chunkSize is how much memory messages share at most, in bytes.
const chunkSize = 4 << 10

// messageHeader is what gRPC sends before each message, in bytes.
const messageHeader = 5

// replayBuffer keeps what a stream has sent, for attempts that may follow: bytes, since applications use their
// messages again, made before any interceptor sees the message. An attempt is sent copies, decoded from them: real
// messages of the same type. Protobuf's messages are kept in protobuf's encoding, whatever the call's codec makes of
// them; what others are, only that codec knows.
//
// Its stream's lock guards it, but for encode, which reads only what does not change, and decode.
type replayBuffer struct {
	codec    encoding.CodecV2 // of messages that are not protobuf's
	messages []replayed
	chunk    []byte // the bytes of the last messages, one after the other
	over     bool   // the call is over, and nothing is kept any more

	used     int           // of limit: the bytes and a header for each message
	reserved int           // of total: for used, and up to an eighth more, so that few messages write to it
	limit    int           // of this call, in bytes
	total    *atomic.Int64 // of all calls of the Retrier
	sum      int64         // the limit of total
}

// encoded is a message as it was when it was encoded.
type encoded struct {
	data []byte
	kind messageKind
}

// replayed is a message that is kept.
type replayed struct {
	data []byte // never changed
	of   *messageKind
}

// messageKind is what a kept message is made of again.
type messageKind struct {
	message protoreflect.MessageType // protobuf's own
	other   reflect.Type             // of the codec's
}

func kindOf(m any) messageKind {
	if t := protobufType(m); t != nil {
		return messageKind{message: t}
	}
	return messageKind{other: reflect.TypeOf(m)}
}

// encode encodes a message, in the memory of buffer if it fits; or says what commits the call, since the message
// cannot be kept.
func (r *replayBuffer) encode(m any, buffer []byte) (e encoded, why decision.Commit) {
	if _, prepared := m.(*grpc.PreparedMsg); prepared {
		return encoded{}, decision.CommitPreparedMessage // its bytes are not known
	}
	var err error
	e.kind = kindOf(m)
	if message, ok := m.(proto.Message); ok && e.kind.message != nil {
		e.data, err = proto.MarshalOptions{}.MarshalAppend(buffer[:0], message)
	} else {
		e.data, err = r.encodeOther(m, buffer)
	}
	if err != nil {
		return encoded{}, decision.CommitUnsendable
	}
	return e, decision.CommitNone
}

func (r *replayBuffer) encodeOther(m any, buffer []byte) ([]byte, error) {
	data, err := r.codec.Marshal(m)
	if err != nil {
		return nil, err
	}
	buffer = slices.Grow(buffer[:0], data.Len())[:data.Len()]
	data.CopyTo(buffer)
	if !mayHoldBuffers(m) {
		data.Free() // else it may be what m holds, which gRPC needs when it encodes m itself
	}
	return buffer, nil
}

// appendMessage keeps a message. It reports false if that does not fit.
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
	r.messages = append(r.messages, replayed{r.chunk[begin:], r.kept(e.kind)})
	return true
}

// kept returns k where it is kept; most streams send one kind of messages.
func (r *replayBuffer) kept(k messageKind) *messageKind {
	if n := len(r.messages); n > 0 && *r.messages[n-1].of == k {
		return r.messages[n-1].of
	}
	return new(k)
}

// decode makes a copy of a message. Some codecs cannot do that with what a client sends.
func (r *replayBuffer) decode(kept replayed) (m any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the codec has panicked: %v", p)
		}
	}()
	if t := kept.of.message; t != nil {
		made := t.New().Interface()
		return made, proto.Unmarshal(kept.data, made)
	}
	bytes, t := mem.BufferSlice{mem.SliceBuffer(kept.data)}, kept.of.other
	switch {
	case t == nil:
		return nil, errors.New("nothing is known of the message's type")
	case t.Kind() == reflect.Pointer:
		m = reflect.New(t.Elem()).Interface()
		return m, r.codec.Unmarshal(bytes, m)
	default:
		value := reflect.New(t) // codecs decode into a pointer what they may encode without
		err = r.codec.Unmarshal(bytes, value.Interface())
		return value.Elem().Interface(), err
	}
}

// reserve takes size bytes more of the Retrier's, and some of those that may follow, if there are.
func (r *replayBuffer) reserve(size int) bool {
	need := r.used + size - r.reserved
	ahead := min(r.used/8, r.limit-r.used-size)
	return r.take(need+ahead) || ahead > 0 && r.take(need)
}

func (r *replayBuffer) take(n int) bool {
	if r.total.Add(int64(n)) > r.sum {
		r.total.Add(-int64(n))
		return false
	}
	r.reserved += n
	return true
}

// release forgets the messages.
func (r *replayBuffer) release() {
	if r.reserved > 0 {
		r.total.Add(-int64(r.reserved))
	}
	r.messages, r.chunk, r.used, r.reserved = nil, nil, 0, 0
}

// replace keeps this message alone. It reports false if that does not fit.
func (r *replayBuffer) replace(e encoded) bool {
	r.release()
	return r.appendMessage(e)
}

// close forgets the messages, and keeps none from now on.
func (r *replayBuffer) close() {
	r.release()
	r.over = true
}

// replayLimit is what the call's options allow to keep, in bytes.
func replayLimit(opts []grpc.CallOption) int {
	limit := maxReplayBytesPerCall
	for _, o := range opts {
		if o, ok := promoted(o).(grpc.MaxRetryRPCBufferSizeCallOption); ok {
			limit = o.MaxRetryRPCBufferSize
		}
	}
	return limit
}
