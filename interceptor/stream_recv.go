// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/policy"
)

// RecvMsg receives a message. The first one commits the call to its attempt; until then, an attempt
// that fails may be followed by another one, and the application does not notice.
func (s *stream) RecvMsg(m any) error {
	t := s.direct.Load()
	if t == nil {
		var over error
		switch t, over = s.await(m); {
		case t == nil:
			return over
		case t.message != nil:
			return s.take(t, m)
		}
	}
	err := s.receiveFrom(t, m)
	if err == nil && s.simple {
		return nil // fast path: the call is committed
	}
	return s.received(t, m, err)
}

func (s *stream) receiveFrom(t *streamAttempt, m any) error {
	returned := false
	defer s.guard(t, &returned)
	err := t.stream.RecvMsg(m)
	returned = true
	return err
}

// await waits for the attempt that the call is committed to: its first message is there, or the application
// receives from it. If the call is over without, it returns what RecvMsg is to return.
func (s *stream) await(m any) (*streamAttempt, error) {
	s.mu.Lock()
	defer s.unlock()
	s.into = m
	if s.races {
		s.replies = s.call.retrier.replyType(s.call.method, m)
	}
	defer func() { s.into = nil }()
	for used := false; ; {
		t := s.chosen
		if !s.desc.ServerStreams && s.done {
			t = s.answer // its reply came with its end
		}
		switch {
		case t != nil && t.message != nil && (s.desc.ServerStreams || s.done):
			return t, nil
		case s.done:
			s.rethrow()
			return nil, s.final
		case t != nil && t.open() && !t.reading:
			if used {
				clearReply(m)
			}
			return t, nil
		}
		switch t := s.unread(); {
		case t == nil:
			s.wait()
		case s.races && !s.replies.makes():
			s.commit(t, policy.CommitMessage) // only one attempt can receive into it
		case s.races:
			t.reading = true
			go s.listen(t)
		default:
			if used {
				clearReply(m)
			}
			used, t.reading = true, true
			s.outside(func() { s.read(t) })
		}
	}
}

// unread is an attempt of a call that is not committed, whose answer nobody waits for; nil if there is none.
// It requires mu.
func (s *stream) unread() *streamAttempt {
	for _, t := range s.running {
		if s.chosen == nil && t.open() && !t.reading {
			return t
		}
	}
	return nil
}

// listen is read in a goroutine of ours.
func (s *stream) listen(t *streamAttempt) {
	returned := false
	defer s.catch(t, &returned)
	s.read(t)
	returned = true
}

// read waits for the answer of an attempt: its headers, and then its first message, or its end. It returns
// without if there is nothing to receive into, or the application goes on by itself. Who calls it has set
// reading.
func (s *stream) read(t *streamAttempt) {
	if !t.headed {
		s.readHeader(t)
	}
	m, shown := s.target(t)
	if m == nil {
		return
	}
	err := s.receiveFrom(t, m)
	switch {
	case err == nil && shown && s.bring(t, m):
		return
	case err == nil:
		err = errGivenUp
	case err == io.EOF:
		err = nil
	}
	s.report(t, err)
}

// errGivenUp is how an attempt ends whose answer came too late: another has its place.
var errGivenUp = status.Error(codes.Canceled, "given up for another attempt")

// target returns what the answer of an attempt is received into: a message of the application's, or like it.
// While the application does not receive, only its method's descriptor may say what that is. If nobody
// knows, target returns nil, and nobody reads the attempt any more. shown is false if the application will
// not see the message.
func (s *stream) target(t *streamAttempt) (m any, shown bool) {
	s.mu.Lock()
	defer s.unlock()
	grpcs := isGRPCs(s.replay.codec)
	switch {
	case t.abandoned, s.into == nil && t.attempt.ended.Load():
		if grpcs {
			return new(emptypb.Empty), false // no message counts: only the end
		}
		s.reportUnread(t)
		return nil, false
	case t == s.chosen:
	case s.into != nil && !s.races:
		t.delivered = true
		return s.into, true
	case s.into != nil && s.replies.makes():
		return s.replies.newMessage(), true
	case s.into != nil: // RecvMsg commits the call
	case grpcs && (s.races || t.sendFailed):
		m = s.call.retrier.describedReply(s.call.method)
	}
	if m == nil {
		s.leave(t)
	}
	return m, true
}

// reportUnread reports the end of an attempt that nobody receives from, since the user's codec would take no message of
// ours. It requires mu.
func (s *stream) reportUnread(t *streamAttempt) {
	err := t.finished
	switch {
	case t.abandoned:
		err = errGivenUp
	case err == nil:
		s.leave(t)
		return
	}
	s.outside(func() {
		_, _ = s.headerOf(t) // gRPC has written peer and trailer when it returns
		s.report(t, err)
	})
}

// leave ends somebody's waiting for the answer of an attempt. It requires mu.
func (s *stream) leave(t *streamAttempt) {
	t.reading = false
	s.handOver()
	s.changed.Broadcast()
	if t.cut != nil {
		s.outside(func() { s.report(t, t.cut) })
	}
}

// bring takes in the first message of an attempt. It reports false if that came too late. A single reply
// comes with the end of its attempt, and is the call's answer if that is.
func (s *stream) bring(t *streamAttempt, m any) bool {
	s.mu.Lock()
	defer s.unlock()
	if !s.desc.ServerStreams {
		t.message = m
		s.outside(func() { s.report(t, nil) })
		return true
	}
	if !s.commit(t, policy.CommitMessage) {
		return false
	}
	t.message = m
	s.leave(t)
	return true
}

// take gives the application the first message of an attempt.
func (s *stream) take(t *streamAttempt, m any) error {
	var err error
	if !t.delivered {
		err = s.convert(t.message, m)
	}
	s.mu.Lock()
	t.message = nil
	s.handOver()
	s.unlock()
	if err != nil {
		return s.received(t, m, err)
	}
	s.resume.delivered(m)
	return nil
}

// convert puts a message in place of what is in m, which may be of another type.
func (s *stream) convert(message, m any) error {
	if kindOf(message) == kindOf(m) {
		copyReply(m, message)
		return nil
	}
	data, err := s.replay.codec.Marshal(message)
	if err == nil {
		defer data.Free()
		err = s.replay.codec.Unmarshal(data, m)
	}
	if err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

// received takes in what the application has received from the attempt that the call is committed to, and
// returns what RecvMsg is to return.
func (s *stream) received(t *streamAttempt, m any, err error) error {
	switch {
	case err == nil && s.desc.ServerStreams:
		s.heard(t)
		s.resume.delivered(m)
		return nil
	case err == nil, err == io.EOF:
		s.report(t, nil)
	case s.rewind(t):
		s.conclude(t, err, true)
		clearReply(m)
		return s.RecvMsg(m)
	default:
		s.report(t, err)
	}
	final := s.outcome()
	if err == nil && final == io.EOF {
		return nil // the one reply
	}
	return final
}

// heard tells admission of the first message of an attempt, where the call was committed to that before it came.
func (s *stream) heard(t *streamAttempt) {
	if !s.call.known.Admits() || t.received {
		return
	}
	now := s.call.now()
	s.mu.Lock()
	defer s.unlock()
	s.call.engine.Heard(t.number, now)
	t.received, s.simple = true, s.resume.next == nil
}

// outcome waits for the end of the call, and returns what RecvMsg is to return then.
func (s *stream) outcome() error {
	s.mu.Lock()
	defer s.unlock()
	for !s.done {
		s.wait()
	}
	s.rethrow()
	return s.final
}
