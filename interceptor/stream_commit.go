// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

// commit makes t the only attempt of the call, for the given reason. It reports false if t has ended or was
// given up for another. Nobody else commits. It requires mu.
func (s *stream) commit(t *streamAttempt, why policy.Commit) bool {
	if s.chosen != nil || t.over || s.over {
		return s.chosen == t && !t.over
	}
	returned := false
	defer func() {
		if !returned { // the budget has panicked, of which a permit was given back
			s.abort(recover())
		}
	}()
	now := s.call.now()
	step, ok := s.call.engine.Commit(t.number, why, now)
	if ok {
		s.chosen = t
	}
	if why == policy.CommitMessage || why == policy.CommitHeaders {
		s.call.engine.Heard(t.number, now)
	}
	s.act(step, now)
	s.handOver()
	returned = true
	return ok
}

// commitOldest commits the call to the oldest attempt that runs. It reports false if none is open.
// It requires mu.
func (s *stream) commitOldest(why policy.Commit) bool {
	var oldest *streamAttempt
	for _, t := range s.running {
		if t.open() && (oldest == nil || oldest.sendFailed && !t.sendFailed) {
			oldest = t
		}
	}
	return oldest != nil && s.commit(oldest, why)
}

// handOver lets the application and the chosen attempt deal with each other without asking, when nothing is
// left to be sent to it nor to be taken from it by us. It requires mu.
func (s *stream) handOver() {
	t := s.chosen
	if t == nil || s.over || t.over || t.reading || t.message != nil || t.sending || s.needsReplay(t) {
		return
	}
	s.replay.release()
	s.direct.Store(t)
}

// pin commits the call to an attempt, for the given reason, and returns that. Of a call that is done, it returns the
// answer, which may be nil.
func (s *stream) pin(why policy.Commit) (t *streamAttempt, done bool) {
	s.mu.Lock()
	defer s.unlock()
	for s.chosen == nil && !s.done {
		if !s.commitOldest(why) {
			s.wait()
		}
	}
	if s.done {
		return s.answer, true
	}
	return s.chosen, false
}

// Context commits the call, as gRPC's own does, and is then the context of the attempt.
func (s *stream) Context() context.Context {
	t, _ := s.pin(policy.CommitContext)
	if t == nil || t.stream == nil {
		return s.call.ctx
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the attempt that was the answer. Only after RecvMsg has returned an
// error.
func (s *stream) Trailer() metadata.MD {
	t, done := s.pin(policy.CommitTrailer)
	if !done || t == nil || t.stream == nil { // too early: gRPC may be writing it
		return nil
	}
	return t.stream.Trailer()
}
