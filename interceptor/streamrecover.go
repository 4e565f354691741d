// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"

	"github.com/stagger-go/stagger/policy"
)

// recover finds out how an attempt has ended that took no message or brought no headers, and leads
// on to the next. It returns io.EOF if the call is over or committed: RecvMsg says how.
func (s *stream) recover(t *try) error {
	s.mu.Lock()
	if s.racing() {
		s.mu.Unlock()
		return nil // what was sent is kept, and the race goes on
	}
	for (s.receiving || s.heading) && s.running == t && !s.done && !s.committed {
		s.wait() // the receiver finds out
	}
	for s.led && !s.done {
		s.wait()
	}
	if s.running != t && !s.done {
		s.mu.Unlock()
		return nil // what was sent has been replayed
	}
	if s.done || s.committed {
		s.mu.Unlock()
		return io.EOF
	}
	s.led = true
	s.mu.Unlock()
	m := new(encoded)
	err := t.stream.RecvMsg(m)
	switch {
	case err == io.EOF: //nolint:errorlint // gRPC returns it bare
		s.unlead(t, nil)
		_ = s.finish(t, io.EOF)
		return io.EOF
	case err == nil && s.unlead(t, m):
		if !s.desc.ServerStreams {
			_ = s.finish(t, nil)
		}
		return io.EOF
	case err == nil:
		m.data.Free()
		err = errGivenUp // the message came too late
	}
	if s.lead(t, err) != nil {
		return io.EOF
	}
	return nil
}

// unlead gives up the lead without a next attempt; early is a message that came before the end, which
// commits the call. It reports false, and keeps the lead, if the attempt was given up meanwhile.
func (s *stream) unlead(t *try, early *encoded) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early = early
	if early != nil && s.desc.ServerStreams && !s.commit(t, policy.CommitMessage) {
		s.early = nil
		return false
	}
	s.led = false
	s.tell()
	return true
}
