// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

// resend sends an attempt what was sent to those before it, and its close.
func (s *stream) resend(t *try) {
	for {
		s.mu.Lock()
		if !s.serves(t) {
			break
		}
		if t.sent < s.replay.length {
			m := s.replay.at(t.sent)
			t.sent++
			m.data.Ref() // the call may end, or go on with another attempt, while gRPC is at it
			s.mu.Unlock()
			err := t.stream.SendMsg(m)
			m.data.Free()
			if err != nil {
				s.undelivered(t, err)
				return
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
	s.resent(t)
	s.mu.Unlock()
}

// undelivered follows t, which has not taken what it was to be sent: if it has ended, the receiver finds out
// how.
func (s *stream) undelivered(t *try, err error) {
	if s.race == nil {
		_ = s.sent(t, err)
		s.mu.Lock()
		s.resent(t)
		s.mu.Unlock()
		return
	}
	s.mu.Lock()
	t.deaf = true
	s.resent(t)
	s.mu.Unlock()
	_ = s.sent(t, err)
}

// resent notes that nothing is left to send to t. It requires mu.
func (s *stream) resent(t *try) {
	if s.race != nil {
		s.race.senders--
		t.sending = false
	}
	s.caughtUp(t)
}

// caughtUp has the application and t go on by themselves, if the call is t's. It requires mu.
func (s *stream) caughtUp(t *try) {
	s.tell()
	if s.running != t || s.done {
		return
	}
	s.replaying = false
	if s.committed {
		s.replay.release()
	}
	s.handOver(t)
}
