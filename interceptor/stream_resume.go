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

// Resume lets a server stream that is cut after messages were delivered go on where it was: next is
// given the last message that the application received and returns the request that asks for those
// after it, or false to let the stream end with its error. The application sees one unbroken stream.
//
// Every resumption is an attempt like any other: the policy decides about it and the budget pays for
// it, and the method must be safe to repeat. A resumption that has brought a message is progress: the policy's
// attempts are counted anew from it. last is a copy, taken of every message that is received;
// next runs in RecvMsg. For streams of other kinds, and for messages other than protobuf's, the option
// does nothing.
func Resume(next func(last proto.Message) (next proto.Message, ok bool)) grpc.CallOption {
	return resumeOption{next: next}
}

// resumption is what a stream with the Resume option needs.
type resumption struct {
	next func(last proto.Message) (next proto.Message, ok bool) // nil without the option
	last proto.Message                                          // belongs to the receiver, as progress does

	progress bool // a message has come since the stream was last cut
}

func resumptionOf(desc *grpc.StreamDesc, opts []grpc.CallOption) (r resumption) {
	if desc.ClientStreams || !desc.ServerStreams {
		return r
	}
	for _, o := range opts {
		if o, ok := unwrapped(o).(resumeOption); ok {
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
		r.last, r.progress = proto.Clone(m), true
	}
}

// rest is the request for what comes after the last message that the application has received; false if there is no
// such message, or the application does not want the rest.
func (s *stream) rest() (request encoded, resumes bool) {
	if s.resume.last == nil {
		return encoded{}, false
	}
	m, ok := s.resume.next(s.resume.last)
	if !ok || m == nil {
		return encoded{}, false
	}
	request, why := s.replay.encode(m, nil)
	return request, why == decision.CommitNone
}
