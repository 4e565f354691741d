// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// SendMsg sends a message to the running attempt, and keeps it as long as another one may follow.
func (s *stream) SendMsg(m any) error {
	if t := s.direct.Load(); t != nil {
		return s.sent(t, t.stream.SendMsg(m))
	}
	if p, ok := m.(*grpc.PreparedMsg); ok {
		return s.sendThrough(p) // nobody knows its bytes, so they cannot be kept
	}
	data, err := s.codec.Marshal(m)
	if err != nil {
		return s.sendThrough(m) // gRPC says what is wrong with it
	}
	message := encoded{data}
	defer message.data.Free() // the buffer has a reference of its own
	s.mu.Lock()
	for (s.led || s.replaying) && !s.done {
		s.wait()
	}
	t := s.running
	if s.done || s.committed {
		s.mu.Unlock()
		return s.sendAfter(t, m)
	}
	message.data.Ref()
	if !s.replay.add(message) {
		message.data.Free()
		if s.commit(t) {
			s.mu.Unlock()
			return s.sent(t, t.stream.SendMsg(m))
		}
		s.mu.Unlock()
		if err := s.recover(t); err != nil {
			return err
		}
		return s.SendMsg(m) // on the attempt that has taken its place
	}
	s.mu.Unlock()
	s.codec.pending.Store(&pending{m, message})
	err = t.stream.SendMsg(m)
	s.codec.pending.Store(nil)
	if err != io.EOF { //nolint:errorlint // gRPC returns it bare
		return s.sent(t, err)
	}
	return s.recover(t)
}

// sendAfter sends on an attempt that the call is committed to, or reports that the call is over.
func (s *stream) sendAfter(t *try, m any) error {
	if t.stream == nil || s.direct.Load() == nil {
		if !s.desc.ClientStreams {
			return nil
		}
		return io.EOF
	}
	return s.sent(t, t.stream.SendMsg(m))
}

// sendThrough commits the call to its running attempt and sends on that.
func (s *stream) sendThrough(m any) error {
	t := s.pin()
	s.mu.Lock()
	for s.replaying && !s.done {
		s.wait()
	}
	s.mu.Unlock()
	return s.sendAfter(t, m)
}

// sent ends the call if gRPC could not send for a reason on this side.
func (s *stream) sent(t *try, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // gRPC returns it bare
		return err
	}
	s.mu.Lock()
	for s.led && !s.done {
		s.wait()
	}
	if s.done || s.running != t {
		defer s.mu.Unlock()
		return s.final // nil if another attempt is sent it
	}
	t.watch.disarm()
	s.led, s.state.Committed = true, policy.CommitUnsendable // no other attempt could send it
	s.mu.Unlock()
	return s.lead(t, err)
}

// CloseSend closes the application's side, of this attempt and of those that follow. It does not wait
// for a replay, which may itself wait for the application to receive.
func (s *stream) CloseSend() error {
	s.mu.Lock()
	s.replay.closed = true
	t, later := s.running, s.led || s.replaying // an attempt that is replayed to is closed after that
	s.mu.Unlock()
	if later || t.stream == nil {
		return nil
	}
	return t.stream.CloseSend()
}

// resend sends an attempt what was sent to those before it, and its close.
func (s *stream) resend(t *try) {
	for {
		s.mu.Lock()
		if s.running != t || s.done {
			break
		}
		if t.sent < len(s.replay.messages) {
			m := s.replay.messages[t.sent]
			t.sent++
			m.data.Ref() // the call may end, or go on with another attempt, while gRPC is at it
			s.mu.Unlock()
			err := t.stream.SendMsg(m)
			m.data.Free()
			if err != nil {
				_ = s.sent(t, err)
				s.mu.Lock()
				break // it has ended; the receiver finds out how
			}
			continue
		}
		if s.replay.closed && !t.closed {
			t.closed = true
			s.mu.Unlock()
			_ = t.stream.CloseSend()
			continue
		}
		break
	}
	defer s.mu.Unlock()
	if s.running != t || s.done {
		return
	}
	s.replaying = false
	if s.committed {
		s.replay.release()
	}
	s.handOver(t)
	s.tell()
}
