// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
)

// streamRace is what a stream has besides whose attempts may run beside each other. Until the call is
// committed, the race leads: every attempt has a goroutine that waits for its answer, and the first one that
// is answered is the one that the call is committed to. Then all is as with any stream.
//
// As long as one attempt runs alone, the application itself sends to it. Else, and where it would have to
// wait, what it sends is only kept, and each attempt has a goroutine that sends it while it is behind.
//
// It is guarded by the stream's lock.
type streamRace struct {
	contest

	senders int  // goroutines that send
	asked   bool // the application waits for headers
	panics  any  // what an interceptor further in has panicked with, in a goroutine of ours
}

// newRace makes a race if the policy may send a second attempt beside the first.
func (s *stream) newRace() *streamRace {
	if !s.policy.Parallel() || s.policy.MaxAttempts() < 2 || s.state.MaxAttempts < 2 {
		s.state.InPlace = true
		return nil
	}
	r := &streamRace{contest: contest{oldCall: &s.oldCall, fires: s.fire}}
	if s.policy.Hedge() != nil {
		s.gates.slow = budget.KindHedge
	}
	r.learn()
	return r
}

// racing reports whether the call may still be that of any attempt. It requires mu.
func (s *stream) racing() bool { return s.race != nil && !s.committed && !s.done }

// contested reports whether attempts run that the call is not committed to. It requires mu.
func (s *stream) contested() bool { return s.race != nil && len(s.race.running) > 0 }

// start sends the first attempt, with the given options, or those that follow if it cannot be opened.
func (s *stream) start(opts []grpc.CallOption) error {
	t := &s.first
	s.mu.Lock()
	ctx := s.enter(t, s.oldAttempt, firstAttempt(s.ctx))
	s.mu.Unlock()
	final := s.run(t, ctx, opts)
	s.rethrow()
	return final
}

// enter adds an attempt that is being sent, and returns its context. It requires mu.
func (s *stream) enter(t *try, a *oldAttempt, ctx context.Context) context.Context { //nolint:revive // the context is the attempt's
	t.oldAttempt, t.try, t.hearing = a, t, true
	ctx, t.cancel = context.WithCancel(ctx)
	a.onEnd = func() { s.ended(t) }
	s.race.enter(&t.lane)
	return ctx
}

// launch adds an attempt after the first. It requires mu.
func (s *stream) launch() (*try, context.Context) {
	t := new(try)
	return t, s.enter(t, s.oldCall.another(), laterAttempt(s.ctx, s.state.Attempts-1))
}

// run opens an attempt that was added, and has it answered in a goroutine of its own. It returns the error of
// the call if that ends with it.
func (s *stream) run(t *try, ctx context.Context, opts []grpc.CallOption) error { //nolint:revive // the context is the attempt's
	opened, final := s.join(t, ctx, opts)
	if opened {
		go s.hear(t)
	}
	return final
}

// join opens an attempt that was added. If it cannot be opened, it has failed.
func (s *stream) join(t *try, ctx context.Context, opts []grpc.CallOption) (opened bool, final error) { //nolint:revive // the context is the attempt's
	defer s.catch(t)
	stream, err := s.open(ctx, s.desc, s.cc, s.method, slices.Clip(opts)...)
	if err != nil {
		return false, s.fall(t, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.stream, t.opened = stream, true
	s.spread()
	s.tell()
	return true, nil
}

// fire runs in the timer's goroutine, and sends the attempt that is due there.
func (s *stream) fire() {
	s.mu.Lock()
	if !s.race.rings() || !s.race.allowed() {
		s.mu.Unlock()
		return
	}
	t, ctx := s.launch()
	s.mu.Unlock()
	if opened, _ := s.join(t, ctx, s.optionsAgain(t.oldAttempt)); opened {
		s.hear(t)
	}
}
