// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/policy"
)

type resumeOption struct {
	grpc.EmptyCallOption

	next func(last proto.Message) (next proto.Message, ok bool)
}

// Resume lets a server stream that is cut after messages were delivered go on where it was: next is
// given the last message that the application received and returns the request that asks for those
// after it, or false to let the stream end with its error. The application sees one unbroken stream.
//
// Every resumption is an attempt like any other: the policy decides about it and the budget pays for
// it, and the method must be safe to repeat. last is a copy, taken of every message that is received;
// next runs in RecvMsg. For streams of other kinds, and for messages other than protobuf's, the option
// does nothing.
func Resume(next func(last proto.Message) (next proto.Message, ok bool)) grpc.CallOption {
	return resumeOption{next: next}
}

// resumption is what a stream with the Resume option needs.
type resumption struct {
	next func(last proto.Message) (next proto.Message, ok bool) // nil without the option
	last proto.Message                                          // belongs to the receiver

	begun bool // what the application has sent is replaced; guarded by the stream's lock
}

func resumptionOf(desc *grpc.StreamDesc, opts []grpc.CallOption) (r resumption) {
	if desc.ClientStreams || !desc.ServerStreams {
		return r
	}
	for _, o := range opts {
		if o, ok := o.(resumeOption); ok {
			r.next = o.next
		}
	}
	return r
}

// delivered remembers a message that the application is about to see.
func (r *resumption) delivered(m any) {
	if r.next == nil {
		return
	}
	if m, ok := m.(proto.Message); ok {
		r.last = proto.Clone(m)
	}
}

// receiveOn receives from an attempt that the call is committed to: the one reply of a client stream, or a
// message of a server stream that, if it is cut, goes on where it was on another attempt.
func (s *stream) receiveOn(t *try, m any) error {
	return s.arrived(t, m, t.stream.RecvMsg(m))
}

// arrived takes in what was received into m.
func (s *stream) arrived(t *try, m any, err error) error {
	if s.resumption.next == nil {
		return s.received(t, err)
	}
	if err == nil {
		s.resumption.delivered(m)
		return nil
	}
	if err == io.EOF || !s.rewind(t) { //nolint:errorlint // gRPC returns it bare
		return s.received(t, err)
	}
	if final := s.lead(t, err); final != nil {
		return final
	}
	clearReply(m)
	return s.RecvMsg(m)
}

// rewind makes the request for what comes after the last message the one to be sent, and takes the
// lead. It reports false if the application does not want that.
func (s *stream) rewind(t *try) bool {
	if s.resumption.last == nil {
		return false
	}
	request, ok := s.resumption.next(s.resumption.last)
	if !ok {
		return false
	}
	data, err := s.codec.CodecV2.Marshal(request)
	if err != nil {
		return false
	}
	defer data.Free() // the buffer has a reference of its own
	s.mu.Lock()
	defer s.mu.Unlock()
	for (s.led || s.replaying) && !s.done {
		s.wait()
	}
	if s.done || s.running != t || !s.replay.add(data) {
		return false
	}
	s.replay.closed, s.resumption.begun = true, true
	s.led, s.committed, s.state.Committed = true, false, policy.CommitNone
	s.direct.Store(nil)
	return true
}
