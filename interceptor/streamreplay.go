// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

// resend sends an attempt what was sent to those before it, and its close.
func (s *stream) resend(t *try) {
	for {
		s.mu.Lock()
		if s.running != t || s.done {
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
