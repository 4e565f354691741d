// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/streams"
)

// RecvMsg receives a message. The first one commits the call to its attempt. Until then, failed attempts
// may be retried without the application noticing.
func (s *stream) RecvMsg(m any) error {
	t := task{Task: streams.Task{Kind: streams.RecvMsg}, message: m}
	if a := s.receives.Load(); a != nil {
		if t.err = s.direct(a, streams.RecvMsg, m); t.err == nil {
			return nil
		}
		t.direct(a, streams.Receive)
	} else if s.racing {
		t.replies = s.call.retrier.replyType(s.call.method, m)
		t.Makes = t.replies.makes()
	}
	s.run(&t)
	if t.order.Returns == streams.Brought {
		copyReply(m, t.reply)
	}
	err := t.returns()
	if err == nil {
		s.resume.delivered(m)
	}
	return err
}

// direct calls SendMsg or RecvMsg of the attempt that the call is committed to.
func (s *stream) direct(a *streamAttempt, kind streams.Kind, m any) (err error) {
	returned := false
	defer func() {
		if !returned {
			s.panicked(&task{Task: streams.Task{Kind: kind, Attempt: a.number}}, recover())
		}
	}()
	if kind == streams.SendMsg {
		err = a.stream.SendMsg(m)
	} else {
		err = a.stream.RecvMsg(m)
	}
	returned = true
	return err
}

// direct makes t a call that has used a without asking, and has t.err to report.
func (t *task) direct(a *streamAttempt, do streams.Do) {
	t.order.Do, t.on, t.Attempt = do, a, a.number
	t.result, t.done = streams.Result{Err: t.err}, true
}

// returns is the error that the application gets.
func (t *task) returns() error {
	switch t.order.Returns {
	case streams.EOF:
		return io.EOF
	case streams.Final:
		return t.order.Err
	case streams.Own:
		return t.err
	default:
		return nil
	}
}

// SendMsg sends a message, and keeps it as long as another attempt may need it. The first attempt sends the message itself;
// later ones send copies.
func (s *stream) SendMsg(m any) error {
	t := task{Task: streams.Task{Kind: streams.SendMsg}, message: m}
	if a := s.sends.Load(); a != nil {
		if t.err = s.direct(a, streams.SendMsg, m); t.err == nil || t.err == io.EOF {
			return t.err
		}
		t.direct(a, streams.Send)
	} else if s.keeps.Load() {
		t.bytes, t.Commit = s.encoder.encode(m) // before an inner interceptor can change m
		t.encoded = true
	}
	s.run(&t)
	return t.returns()
}

// CloseSend closes the application's side of this attempt and of later ones. It does not wait
// for a replay, which may itself wait for the application to receive.
func (s *stream) CloseSend() error {
	t := task{Task: streams.Task{Kind: streams.CloseSend}}
	s.run(&t)
	return t.returns()
}

// Header returns the headers of the attempt, and commits the call to it. They are nil if the attempt ended without.
func (s *stream) Header() (metadata.MD, error) {
	t := task{Task: streams.Task{Kind: streams.Header}}
	if a := s.receives.Load(); a != nil {
		t.order.Do, t.on, t.Attempt = streams.GetHeader, a, a.number
		if s.do(&t); t.result.Headers {
			return t.headers, nil
		}
	}
	s.run(&t)
	if t.on != nil && t.headers == nil && t.stream != nil && t.over {
		return t.stream.Header() // the application receives directly
	}
	if t.order.Returns == streams.Own {
		return nil, t.err
	}
	return t.headers, nil // nil as in gRPC: RecvMsg returns the error
}

// Context commits the call, as in gRPC, and returns the context of the attempt.
func (s *stream) Context() context.Context {
	t := task{Task: streams.Task{Kind: streams.Context}}
	s.run(&t)
	if t.on == nil || t.stream == nil {
		return t.context
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the call's answer; nil before the end.
func (s *stream) Trailer() metadata.MD {
	if stream := s.shown(); stream != nil {
		return stream.Trailer()
	}
	return nil
}

func (s *stream) shown() grpc.ClientStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.machine.Answer(); n > 0 && s.machine.Over() {
		return s.attempts[n-1].stream
	}
	return nil
}
