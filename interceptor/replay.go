// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/decision"
)

// defaultMaxReplayBytes bounds the bytes that all streams of a Retrier together keep for replay,
// without [WithMaxReplayBytes]: the limit of a client in grpc-java.
const defaultMaxReplayBytes = 16 << 20

// maxReplayBytesPerCall is gRPC's default for grpc.MaxRetryRPCBufferSize.
const maxReplayBytesPerCall = 256 << 10

// maxSharedBlock is the largest size of the memory blocks that messages share, in bytes.
const maxSharedBlock = 8 << 10

// messageHeader is the size of gRPC's prefix of each message, in bytes.
const messageHeader = 5

// replayLog is what a stream has sent, for later attempts. It keeps bytes, because applications reuse messages, and encodes them before
// any interceptor sees the message. Later attempts send copies decoded from the bytes: real messages of the same type. It keeps only
// protobuf's own messages (API v2), in protobuf's encoding, even if the call's codec is another one.
//
// A call in mode OBSERVE keeps nothing: it only counts, to tell where its limit would commit it.
//
// The stream's lock guards blocks, newest, closed and used.
type replayLog struct {
	blocks []block
	newest block         // the last of blocks, if the next message may share its memory
	closed bool          // after the messages
	used   int           // of limit: the bytes and a header for each message
	limit  int           // of this call, in bytes
	total  *atomic.Int64 // used, of all calls of the Retrier; nil: nothing is kept
	most   int64         // the limit of total
}

// block is memory with messages of one type, each after its length. The bytes never change, but others may follow them.
type block struct {
	data []byte
	of   protoreflect.MessageType
}

// encoded is a message in encoded form.
type encoded struct {
	block

	first   bool   // in its block
	message []byte // the last one of the block
	size    int    // of message, also if that is only measured
}

func (l *replayLog) init(r *Retrier, opts []grpc.CallOption, keeps bool) {
	l.limit, l.most = replayLimit(opts), r.maxReplayed
	if keeps {
		l.total = &r.replayed
	}
}

// keep keeps a message, and reports whether it fits.
func (l *replayLog) keep(e *encoded) bool {
	size := e.size + messageHeader
	if l.used+size > l.limit {
		return false
	}
	if l.total == nil {
		l.used += size
		return true
	}
	if l.total.Add(int64(size)) > l.most {
		l.total.Add(int64(-size))
		return false
	}
	l.used += size
	if e.first {
		l.blocks = append(l.blocks, e.block)
	} else {
		l.blocks[len(l.blocks)-1] = e.block
	}
	l.newest = e.block
	if cap(e.data) > maxSharedBlock {
		l.newest = block{}
	}
	return true
}

// release drops the messages.
func (l *replayLog) release() {
	if l.total != nil {
		l.total.Add(int64(-l.used))
	}
	l.blocks, l.newest, l.used = nil, block{}, 0
}

// replay passes copies of the messages to send, until that returns an error.
func (l *replayLog) replay(send func(m any) error) error {
	for _, b := range l.blocks {
		for rest := b.data; len(rest) > 0; {
			data, n := protowire.ConsumeBytes(rest)
			rest = rest[n:]
			m, err := encoded{block: b, message: data}.decode()
			if err == nil {
				err = send(m)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// decode returns a copy of a message.
func (e encoded) decode() (m any, err error) {
	made := e.of.New().Interface()
	return made, proto.Unmarshal(e.message, made)
}

// encoder encodes the messages that a stream sends.
type encoder struct {
	measures bool         // it only measures
	own      reflect.Type // of the last message, if it is protobuf's own
	newest   block        // messages share it
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
	if c.measures {
		e.size = size
		return decision.CommitNone
	}
	b, of := c.newest.data, message.ProtoReflect().Type()
	needed := protowire.SizeBytes(size)
	shared := of == c.newest.of && len(b)+needed <= cap(b)
	if !shared {
		b = make([]byte, 0, max(needed, min(2*cap(b), maxSharedBlock)))
	}
	b = protowire.AppendVarint(b, uint64(size))
	begin := len(b)
	b, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(b, message)
	if err != nil || len(b)-begin != size {
		return decision.CommitUnsendable
	}
	*e = encoded{block{b, of}, !shared, b[begin:], size}
	if cap(b) <= maxSharedBlock {
		c.newest = e.block
	} else {
		c.newest = block{} // it would stay as long as the stream
	}
	return decision.CommitNone
}

// replayLimit returns the bytes that the call's options allow to keep.
func replayLimit(opts []grpc.CallOption) int {
	limit := maxReplayBytesPerCall
	for _, o := range opts {
		if o, ok := o.(grpc.MaxRetryRPCBufferSizeCallOption); ok {
			limit = o.MaxRetryRPCBufferSize
		}
	}
	return limit
}
