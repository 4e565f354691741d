// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/decision"
)

type resumeOption struct {
	grpc.EmptyCallOption

	next func(last proto.Message) (next proto.Message, ok bool)
}

// Resume lets a server stream continue if it breaks after it has delivered messages. next gets the last message that the application has
// received. It returns the request for the messages after that, or nil or false to end the stream with its error. Before the first message,
// the stream sends its own request again. The application sees one unbroken stream.
//
// Every resumption is an attempt: the policy and the budget must allow it, and the method must be idempotent. An attempt that has delivered
// a message, or has run for 10 s, is progress: it counts as the first attempt again, for the policy and for [MaxAttempts]. After 10 s, the
// backoff also starts again, and the attempt costs nothing, so that a quiet stream survives any number of cuts. To bound the whole stream,
// return false. next may change last, which is a copy. The option costs a copy of every received message. next runs in RecvMsg. For streams of
// other kinds, and for messages other than protobuf's, the option has no effect.
func Resume(next func(last proto.Message) (next proto.Message, ok bool)) grpc.CallOption {
	return resumeOption{next: next}
}

// resumption is the state of a stream with the Resume option.
type resumption struct {
	next func(last proto.Message) (next proto.Message, ok bool) // nil without the option
	last proto.Message                                          // belongs to the receiver, as progress does

	progress bool // a message has arrived since the stream last broke
	asked    bool // the log has the request for the rest; the stream's lock guards it
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

// delivered records a message that the application is about to see.
func (r *resumption) delivered(m any) {
	if r.next == nil {
		return
	}
	if m, ok := m.(proto.Message); ok {
		r.last, r.progress = proto.Clone(m), true
	}
}

// makeRest puts the request for the messages after the application's last one into the log. Before the first message, the log has the
// stream's own request. It returns false if there is no request.
func (s *stream) makeRest() bool {
	if s.resume.last == nil {
		return len(s.log.blocks) > 0
	}
	m, ok := s.resume.next(proto.Clone(s.resume.last)) // which it may change
	var e encoded
	made := encoder{measures: s.encoder.measures}
	if !ok || m == nil || made.encode(m, s.log.limit, &e) != decision.CommitNone || !m.ProtoReflect().IsValid() {
		return false // a nil pointer is no request, though it can be encoded: as one for the whole stream
	}
	s.log.release()
	s.log.closed, s.whole, s.resume.asked = true, true, true
	return s.log.keep(&e)
}
