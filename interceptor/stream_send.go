// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"io"
	"slices"

	"github.com/stagger-go/stagger/policy"
)

// unblocked is how much gRPC takes of a stream's messages before it lets their sender wait, in bytes: what
// comes when less was sent is taken whole. It is a constant of gRPC's transport.
const unblocked = 64 << 10

// SendMsg sends a message, and keeps it as long as another attempt may need it. The attempt that runs is sent
// the message itself; others are sent copies. It returns when one of them has taken the message.
func (s *stream) SendMsg(m any) error {
	if t := s.direct.Load(); t != nil {
		return s.sentDirectly(t, s.sendTo(t, m))
	}
	data, why := s.replay.encode(m, s.scratch) // before an inner interceptor can change m
	if s.scratch = data; cap(data) > chunkSize {
		s.scratch = nil
	}
	s.mu.Lock()
	defer s.unlock()
	before := s.replay.used
	switch {
	case s.resume.begun:
		return nil // it is late: the request for the rest has taken its place
	case s.replay.closed:
		why = policy.CommitUnsendable // gRPC says so
	case why == policy.CommitNone && s.chosen == nil && !s.over && !s.replay.add(m, data):
		why = policy.CommitBufferFull
	}
	if why != policy.CommitNone || s.chosen != nil || s.over {
		return s.sendOnce(m, data, why)
	}
	return s.sendKept(m, !s.races || before < unblocked)
}

func (s *stream) sendTo(t *streamAttempt, m any) error {
	returned := false
	defer s.guard(t, &returned)
	err := t.stream.SendMsg(m)
	returned = true
	return err
}

// sentDirectly takes in what has become of a message to the attempt that the call is committed to.
func (s *stream) sentDirectly(t *streamAttempt, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	s.report(t, err)
	s.mu.Lock()
	defer s.unlock()
	for t == s.chosen && !s.done {
		s.wait()
	}
	return s.final // nil if the call goes on with another attempt
}

// sendKept sends a message that the replay buffer has got last: by itself if that does not have it wait, else by
// those who send to attempts that are behind. It requires mu.
func (s *stream) sendKept(m any, free bool) error {
	n := len(s.replay.messages)
	if t := s.lone(n - 1); t != nil && free {
		t.sent = n
		if err := s.sendAside(t, m); s.unsendable(t, err) {
			return s.final
		}
	}
	for !s.taken(n) {
		switch {
		case s.done && s.answer != nil && s.answer.accepted >= n:
			return nil // the answer has overtaken us
		case s.done && (s.caught.happened || s.answer == nil || !s.answer.sending):
			return s.unsent(s.answer)
		}
		s.resumeSenders()
		s.wait()
	}
	if t := s.chosen; t != nil && t.sendFailed {
		return s.unsent(t)
	}
	return nil
}

// taken reports whether an attempt has taken the first n messages of the buffer, or whether it would be wrong to
// wait for that: all attempts are still sent what was before, which may have to wait for the application to
// receive; or they take nothing more, and only the application can find out why. It requires mu.
func (s *stream) taken(n int) bool {
	open, next := 0, 0
	for _, t := range s.running {
		switch {
		case !t.open():
			continue
		case t.accepted >= n:
			return true
		case t.sendFailed && t.reading, !t.sendFailed && t.accepted == n-1:
			next++
		}
		open++
	}
	return s.resume.begun || open > 0 && next == 0
}

// sendOnce sends a message that is not kept, for the given reason. The attempt that takes it is the only one
// from then on. If the first that is sent it has ended, the next is sent a copy, made of data. It requires mu.
func (s *stream) sendOnce(m any, data []byte, why policy.Commit) error {
	kind := s.replay.kindOf(m)
	var last *streamAttempt          // that was sent it
	for !s.done && !s.resume.begun { // after that it is late, as in SendMsg
		t := s.taker()
		if t == nil {
			s.wait()
			continue
		}
		if last != nil && why == policy.CommitBufferFull {
			var err error
			if m, err = s.replay.decode(replayed{slices.Clone(data), kind}); err != nil {
				s.unreplayable(t, err)
				break
			}
		}
		last = t
		err := s.sendAside(t, m)
		if err == nil && t != s.chosen && t.attempt.ended.Load() {
			err = io.EOF // an inner interceptor hides it
			s.noteSendFailed(t)
		}
		switch {
		case s.unsendable(t, err):
			return s.final
		case err == nil && s.commit(t, why):
			return nil
		case t.sendFailed && (t == s.chosen || !t.reading && s.commit(t, why)):
			return s.unsent(t)
		}
	}
	return s.unsent(last)
}

// unsent is what SendMsg says of a message that t was sent, or nil, and has not taken: the end of the call, if that is
// since it could not be sent; else RecvMsg is to say how the call has ended. If the application sends one message only,
// SendMsg says nothing then, as in gRPC. It requires mu.
func (s *stream) unsent(t *streamAttempt) error {
	switch {
	case s.done && t != nil && t.refused && t == s.answer:
		return s.final
	case !s.desc.ClientStreams:
		return nil
	default:
		return io.EOF
	}
}

// unsendable ends the call if gRPC could not send a message to t for a reason on this side. It reports false
// if that is not so, or if the call goes on with other attempts, which are sent the message, or is over already: who
// receives may have heard first. It requires mu.
func (s *stream) unsendable(t *streamAttempt, err error) bool {
	if err == nil || err == io.EOF || errors.Is(err, errSentOnce) {
		return false
	}
	t.refused = true
	if !s.commit(t, policy.CommitUnsendable) {
		return false
	}
	s.outside(func() { s.report(t, err) })
	for !s.done {
		s.wait()
	}
	return true
}

// lone is the attempt that the application itself can send to, after the first n messages of the buffer;
// nil if there is none, or if others run. It requires mu.
func (s *stream) lone(n int) *streamAttempt {
	t := s.chosen
	if t == nil && len(s.running) == 1 && !s.running[0].sendFailed {
		t = s.running[0]
	}
	if t == nil || !t.open() || t.sending || t.sent < n {
		return nil
	}
	return t
}

// taker is the attempt that is sent what is not kept: the oldest that takes anything. It requires mu.
func (s *stream) taker() (taker *streamAttempt) {
	if s.chosen != nil {
		return s.lone(len(s.replay.messages))
	}
	for _, t := range s.running {
		ready := t.open() && !t.sending && !s.needsReplay(t) && (!t.sendFailed || !t.reading)
		if ready && (taker == nil || taker.sendFailed && !t.sendFailed) {
			taker = t
		}
	}
	return taker
}

// sendAside sends a message to t without mu, which it requires, and takes in what becomes of it.
func (s *stream) sendAside(t *streamAttempt, m any) error {
	t.sending = true
	err := s.sendUnlocked(t, m)
	t.sending = false
	s.took(t, err)
	return err
}

func (s *stream) sendUnlocked(t *streamAttempt, m any) error {
	s.unlock()
	defer s.mu.Lock()
	return s.sendTo(t, m)
}

// took takes in what has become of what t was sent. It requires mu.
func (s *stream) took(t *streamAttempt, err error) {
	if err == nil {
		t.accepted = t.sent
	}
	if err == io.EOF || errors.Is(err, errSentOnce) {
		s.noteSendFailed(t)
	}
	s.resumeSenders()
	s.handOver()
	s.changed.Broadcast()
}

// noteSendFailed finds out how an attempt has ended that takes nothing more. It requires mu.
func (s *stream) noteSendFailed(t *streamAttempt) {
	t.sendFailed = true
	if t != s.chosen && t.open() && !t.reading {
		t.reading = true
		s.outside(func() { s.read(t) })
	}
}

// CloseSend closes the application's side, of this attempt and of those that follow. It does not wait
// for a replay, which may itself wait for the application to receive.
func (s *stream) CloseSend() error {
	s.mu.Lock()
	defer s.unlock()
	s.replay.closed = true
	t := s.lone(len(s.replay.messages))
	if t == nil {
		s.resumeSenders()
		return nil
	}
	t.sending, t.closed = true, true
	var err error
	s.outside(func() { err = s.closeTo(t) })
	t.sending = false
	s.took(t, nil)
	return err
}

func (s *stream) closeTo(t *streamAttempt) error {
	returned := false
	defer s.guard(t, &returned)
	err := t.stream.CloseSend()
	returned = true
	return err
}
