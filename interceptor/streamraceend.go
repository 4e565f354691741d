// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"slices"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// goOn sends the attempt that was decided on when the last one failed that ran, or ends the call. It returns
// the error of the call if it ends.
func (s *stream) goOn() error {
	r := s.race
	if r.waiting {
		s.oldCall.wait(r.due - budget.Now())
		s.mu.Lock()
		if r.allowed() {
			t, ctx := s.launch()
			s.mu.Unlock()
			return s.run(t, ctx, s.optionsAgain(t.oldAttempt))
		}
		s.mu.Unlock()
	}
	best := r.best.try
	s.oldAttempt = best.oldAttempt
	final := r.fail()
	s.close(best, final)
	return final
}

// fall takes in that an attempt has failed, or that it has ended after another one has won; err is nil after
// success. The last one that runs goes on with the call, or ends it, and returns its error.
func (s *stream) fall(t *try, err error) error {
	r := s.race
	t.cancel()
	s.mu.Lock()
	defer func() { s.tell(); s.mu.Unlock() }()
	beaten, place := r.over, PlaceLost
	switch {
	case r.leave(&t.lane):
	case s.running == t && !s.done: // the call is committed to it
		for s.contested() {
			s.wait()
		}
		s.running, r.over, beaten, place = nil, false, false, PlaceWon
	default:
		return nil // it has left before
	}
	t.oldAttempt = t.settled()
	s.oldAttempt = t.oldAttempt
	switch {
	case beaten:
		r.lost(&t.lane, err)
	case r.panics != nil:
		r.gates.settle(t.oldAttempt, errLeft, false)
		r.best, r.err, r.verdict = &t.lane, errLeft, policy.Decision{Reason: policy.ReasonNonRetryable}
		r.stop()
	default:
		s.judge(nil, err, nil)
		r.failed(&t.lane, err, t.place(place))
	}
	if s.contested() || r.over && r.err == nil {
		return nil
	}
	s.mu.Unlock()
	final := s.goOn()
	s.mu.Lock()
	return final
}

// win commits the call to an attempt, for the given reason. It requires mu.
func (s *stream) win(t *try, why policy.Commit) {
	r := s.race
	r.leave(&t.lane)
	r.best, r.err, r.last, r.asked = &t.lane, nil, nil, false
	r.stop()
	s.running, s.led, s.replaying = t, false, s.behind(t)
	s.commit(t, why)
	if t.ended.Load() {
		go s.ended(t) // its hook has come too early to count
	}
}

// choose commits the call to the oldest attempt that runs, for the given reason, if it is not committed yet.
// It requires mu.
func (s *stream) choose(why policy.Commit) {
	for s.racing() {
		if t := s.race.oldest(); t != nil {
			s.win(t, why)
			return
		}
		s.wait()
	}
}

// oldest is the oldest attempt that can go on to the call's end; nil if there is none.
func (r *streamRace) oldest() *try {
	for _, l := range r.running {
		if !r.over && l.try.opened && !l.try.deaf {
			return l.try
		}
	}
	return nil
}

// quiet lets go of what runs in a call that is over. It requires mu.
func (s *stream) quiet() {
	if s.race == nil {
		return
	}
	s.race.stop()
	for s.race.senders > 0 {
		s.wait()
	}
}

// catch ends the call if an interceptor further in has panicked, in a goroutine that is not the
// application's. Then RecvMsg panics, as it would have without us.
func (s *stream) catch(t *try) {
	p := recover()
	if p == nil {
		return
	}
	s.mu.Lock()
	chosen, runs := s.running == t, slices.Contains(s.race.running, &t.lane)
	s.race.panics = p
	s.mu.Unlock()
	switch {
	case chosen:
		_ = s.finish(t, errLeft)
	case runs:
		_ = s.fall(t, errLeft)
	default:
		panic(p) //nolint:forbidigo // it is an observer's
	}
}

// rethrow panics in the application's goroutine with what was caught in another one.
func (s *stream) rethrow() {
	if s.race == nil {
		return
	}
	s.mu.Lock()
	p := s.race.panics
	s.mu.Unlock()
	if p != nil {
		panic(p) //nolint:forbidigo // it comes from an interceptor further in
	}
}
