// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// needsReplay reports whether something is left to be sent to t. It requires mu.
func (s *stream) needsReplay(t *streamAttempt) bool {
	return !t.sendFailed && (t.sent < len(s.replay.messages) || s.replay.closed && !t.closed)
}

// resumeSenders has those attempts sent to that are behind. It requires mu.
func (s *stream) resumeSenders() {
	for _, t := range s.running {
		if t.open() && !t.sending && s.needsReplay(t) {
			t.sending = true
			go s.resend(t)
		}
	}
}

// resend sends an attempt what was sent to those before it, and its close: beside the receiver, since a server
// that waits to be read would else block both. Who starts it has set sending.
func (s *stream) resend(t *streamAttempt) {
	returned := false
	defer s.catch(t, &returned)
	s.mu.Lock()
	defer s.unlock()
	for t.open() && s.needsReplay(t) {
		if t.sent == len(s.replay.messages) {
			t.closed = true
			s.outside(func() { _ = t.stream.CloseSend() })
			continue
		}
		m, err := s.replay.decode(s.replay.messages[t.sent])
		t.sent++
		if err != nil {
			s.unreplayable(t, err)
			break
		}
		s.outside(func() { err = t.stream.SendMsg(m) })
		s.took(t, err)
		if err != nil && s.unsendable(t, err) {
			break
		}
	}
	t.sending = false
	s.handOver()
	s.changed.Broadcast()
	returned = true
}

// unreplayable ends the call with the server's last error, since a message cannot be sent again; or has it go
// on with another attempt that was sent everything. It requires mu.
func (s *stream) unreplayable(t *streamAttempt, err error) {
	for _, other := range s.running {
		if other != t && other.open() && !s.needsReplay(other) && s.commit(other, policy.CommitUnsendable) {
			return
		}
	}
	if s.failure != nil {
		err = s.failure
	} else {
		err = status.Errorf(codes.Internal, "a message cannot be sent again: %v", err)
	}
	_ = s.unsendable(t, err)
}
