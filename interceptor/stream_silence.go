// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// silenceLimit returns how long the server may send nothing while the application waits: the policy's messageTimeout for a stream of
// responses to one request; 0: no limit.
func (s *stream) silenceLimit() time.Duration {
	if s.desc.ClientStreams || !s.desc.ServerStreams || s.entry.mode != policy.ModeEnforce {
		return 0
	}
	return s.entry.policy.MessageTimeout()
}

// limitSilence limits the wait of RecvMsg or Header for attempt t, if the server has the whole request. stop ends the wait.
func (s *stream) limitSilence(t *streamAttempt) (stop func()) {
	if s.silence == 0 {
		return func() {}
	}
	s.lock()
	whole := s.whole
	s.mu.Unlock()
	if !whole {
		return func() {}
	}
	return s.limitWait(t)
}

// limitWait is limitSilence for a server that has the whole request. It needs no lock.
func (s *stream) limitWait(t *streamAttempt) (stop func()) {
	if s.silence == 0 {
		return func() {}
	}
	timer := time.AfterFunc(s.silence, func() {
		if t.ctx.Err() == nil && s.forbids(policy.ModeEnforce) != policy.ReasonModeOff { // else something else has ended it, or the mode has changed
			t.silent.Store(true)
			t.cancel()
		}
	})
	return func() { timer.Stop() }
}

// endedSilent reports whether attempt t, which has ended with err, was cancelled because the server sent nothing. If the caller's context has
// ended as well, that is the end.
func (s *stream) endedSilent(t *streamAttempt, err error) bool {
	return err != nil && t.silent.Load() && s.ctx.Err() == nil
}

// errSilent returns the result of an attempt that was cancelled because the server sent nothing. It is that of a broken connection: the
// server may be gone.
func (s *stream) errSilent() error {
	return status.Errorf(codes.Unavailable, "no message for %v", s.silence)
}
