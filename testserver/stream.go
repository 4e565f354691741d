// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Stream serves an attempt with f, as a gRPC handler would, and then ends with the step of [Step.Then], or with OK. If f returns
// an error, that ends the attempt. Use it for client and bidirectional streams, and whenever the order of sends and receives matters.
//
// Messages are of type proto.Message, or raw: []byte for SendMsg, *[]byte for RecvMsg. Only f receives and sends: unlike other
// steps, a Stream does not wait for a first message, and its OK sends no empty one. Headers and delay of the step come before f, and
// the messages of [Step.RawReplies] after it. f must return when the stream's context is done: [Server.Close] waits for it.
// It must be safe for concurrent use.
func Stream(f func(stream grpc.ServerStream) error) Step {
	s := Step{serve: f, streams: true}
	if f == nil {
		return s.Invalid(errors.New("Stream(nil): want a function"))
	}
	return s
}

// Then sets the end of a [Stream], after its function, or of [OK] with replies, after these: any step, including a Stream.
// That step does not receive a message first, and sends no empty one: Then(OK()) is the default.
func (s Step) Then(end Step) Step {
	switch {
	case s.pick != nil || s.end != endOK || !s.streams && s.replies == nil: // Random of a Stream isn't a Stream
		s = s.Invalid(errors.New("Then: only a Stream, and OK with replies, have an end to set: want Stream(…).Then(…)"))
	case s.then != nil && s.then.end == endCut:
		s = s.Invalid(errors.New("Then after Cut: the connection is gone: want one of them"))
	case s.then != nil:
		s = s.Invalid(errors.New("Then: the end is set already: want one Then"))
	case end.times != 0:
		s = s.Invalid(errors.New("Then of a step with Times: want Stream(…).Then(…).Times(…)"))
	}
	if end.err != nil {
		s = s.Invalid(end.err)
	}
	s.then = &end
	return s
}

// drops reports whether the step may end by dropping the connection.
func (s Step) drops() bool {
	return s.end == endDrop || s.mayDrop || s.then != nil && s.then.drops()
}

// picks reports whether the step passes the attempt to a function.
func (s Step) picks() bool {
	return s.pick != nil || s.then != nil && s.then.picks()
}

// servedStream is the stream of a call as the function of a [Stream] sees it: it records the messages.
type servedStream struct {
	grpc.ServerStream
	call *call
}

// SendHeader sends headers, at most once.
func (s servedStream) SendHeader(md metadata.MD) error { return s.call.sendHeader(lower(md)) }

// SendMsg sends a message and counts it.
func (s servedStream) SendMsg(m any) error { return s.call.send(m) }

// RecvMsg receives a message and records it. It returns [io.EOF] when the client has half-closed.
func (s servedStream) RecvMsg(m any) error { return s.call.receive(m) }
