// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"github.com/stagger-go/stagger/policy"
)

// SendMsg sends a message to the running attempt, and keeps it as long as another one may follow.
func (s *stream) SendMsg(m any) error {
	if t := s.direct.Load(); t != nil {
		return s.sent(t, t.stream.SendMsg(m))
	}
	for {
		t := s.kept.Load()
		if t == nil {
			var over bool
			switch t, over = s.offer(); {
			case over:
				return s.sendAfter(t, m)
			case t == nil && s.post(m):
				return nil
			case t == nil:
				continue
			}
		}
		s.sending.announce(t, m)
		if err, over := s.took(t, m, t.stream.SendMsg(m)); over {
			return err
		}
	}
}

// offer waits for an attempt that can be sent something; nil if attempts run beside each other, or the call
// is over. It reports true if no other may follow that.
func (s *stream) offer() (t *try, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.racing() && (s.led || s.replaying) && !s.done {
		s.wait()
	}
	switch {
	case s.done:
		return nil, true
	case s.racing():
		return s.race.alone(&s.replay), false
	}
	return s.running, s.committed
}

// sendAfter sends on an attempt that the call is committed to, or reports that the call is over.
func (s *stream) sendAfter(t *try, m any) error {
	if t == nil || t.stream == nil {
		return s.half(io.EOF)
	}
	return s.sent(t, t.stream.SendMsg(m))
}

// half is what SendMsg says when RecvMsg is to say how the attempt has ended: nothing, if the application
// sends one message only. That is how gRPC has it.
func (s *stream) half(err error) error {
	if err == io.EOF && !s.desc.ClientStreams { //nolint:errorlint // gRPC returns it bare
		return nil
	}
	return err
}

// sent ends the call if gRPC could not send for a reason on this side.
func (s *stream) sent(t *try, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // gRPC returns it bare
		return err
	}
	s.mu.Lock()
	if s.racing() {
		return s.unsendable(t, err)
	}
	for s.led && !s.done {
		s.wait()
	}
	if s.done || s.running != t {
		defer s.mu.Unlock()
		return s.final // nil if another attempt is sent it
	}
	t.watch.disarm()
	s.led = true
	if !s.committed {
		s.state.Committed = policy.CommitUnsendable // no other attempt could send it
	}
	s.mu.Unlock()
	return s.lead(t, err)
}

// CloseSend closes the application's side, of this attempt and of those that follow. It does not wait
// for a replay, which may itself wait for the application to receive.
func (s *stream) CloseSend() error {
	s.mu.Lock()
	if s.racing() {
		return s.closeRace()
	}
	s.replay.closed = true
	t, later := s.running, s.led || s.replaying // an attempt that is replayed to is closed after that
	s.mu.Unlock()
	if later || t.stream == nil {
		return nil
	}
	return t.stream.CloseSend()
}
