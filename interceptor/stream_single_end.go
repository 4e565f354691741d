// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
)

// onFinish is gRPC's OnFinish, in any goroutine.
func (s *singleStream) onFinish(err error) {
	s.mu.Lock()
	if !s.recorded {
		s.recorded, s.last = true, err
	}
	s.mu.Unlock()
	if s.inside.Load() == 0 {
		s.reportRecorded()
	}
}

// gone runs when the call's context is over. OnFinish reports it a moment later, unless an inner interceptor doesn't pass
// on its options.
func (s *singleStream) gone() {
	if !s.attempt.ended.Load() {
		time.AfterFunc(longestEnd, func() { s.onFinish(status.FromContextError(s.call.ctx.Err()).Err()) })
	}
}

// leftTime is how long the application has to notice an end that an inner interceptor has noticed before it.
const leftTime = time.Second

// reportRecorded reports OnFinish's error when no call is inside.
func (s *singleStream) reportRecorded() {
	s.mu.Lock()
	recorded, last, claimed := s.recorded, s.last, s.claimed
	s.mu.Unlock()
	switch {
	case claimed, !recorded:
	case last == nil, answered(last):
		time.AfterFunc(leftTime, func() { s.settleRecorded(last) })
	default:
		s.settleRecorded(last)
	}
}

func (s *singleStream) settleRecorded(last error) {
	if s.claim() {
		s.settle(last, false)
	}
}

// finishCall reports the end of the attempt for a call of the application. It returns err with the details of the call, for the
// application.
func (s *singleStream) finishCall(err error) error {
	if s.claim() {
		if code := status.Code(err); s.attempt.ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded {
			s.attempt.awaitEnd() // another goroutine of gRPC may be ending it
		}
		s.settle(err, false)
	}
	return s.outcome(err)
}

// outcome waits for the answer, and returns the result of an application's call that gRPC has ended with err.
func (s *singleStream) outcome(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.known {
		s.changed.Wait()
	}
	s.caught.rethrow()
	known, failed := errors.AsType[*Error](s.shown)
	switch {
	case err == nil, !failed:
		return err
	case status.Code(known.err) != status.Code(err): // gRPC's error may say more than the call's end
		again := *known
		again.err = err
		s.shown = &again
	}
	return s.shown
}

// claim returns true for the first caller, which must report the end of the attempt.
func (s *singleStream) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.claimed
	s.claimed = true
	return first
}

// settle reports to the engine, and then to observers, that the attempt has ended with err, nil after success, or has
// panicked. The caller must have claimed the end. If a callback panics, the application's next call repeats the panic,
// because nothing can recover it in gRPC's goroutines.
func (s *singleStream) settle(err error, panicked bool) {
	var step attempts.Step
	s.guard(func() { step = s.conclude(err, panicked) })
	s.call.cancelTimeout()
	s.guard(func() {
		s.call.notifyAttempt(s.attempt, err, step.Place)
		s.call.notifyDecision(step, s.attempt, err)
		s.call.notifyEnd(s.final)
	})
}

// conclude reports the end to the engine, and publishes the call's answer.
func (s *singleStream) conclude(err error, panicked bool) attempts.Step {
	now := s.call.now()
	r := attempts.Result{Err: errPanicked, Panicked: true}
	if s.attempt.took = now.At - s.attempt.began; !panicked {
		r = s.call.result(s.attempt, nil, err, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
	s.pause(now)
	if r.Err != nil && s.call.takeServiceConfig() {
		s.call.set.Policy = s.call.policy
	}
	step := s.call.reportEnd(s.attempt, r, now)
	s.know()
	return step
}

// know publishes the answer. s.mu must be held.
func (s *singleStream) know() {
	s.known, s.final = true, s.call.answer(s.attempt.reported())
	s.shown = s.final
	s.changed.Broadcast()
}
