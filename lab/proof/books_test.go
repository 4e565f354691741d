// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// A budget, a breaker and observers that record what calls hold, and report errors.

// findings are the errors found.
type findings struct {
	mu   sync.Mutex
	list []string
}

func (f *findings) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) < 10 {
		f.list = append(f.list, fmt.Sprintf(format, args...))
	}
}

// chance is a source of random numbers for many goroutines.
type chance struct {
	mu     sync.Mutex
	source *rand.Rand
}

func newChance(seed uint64) *chance { return &chance{source: rand.New(rand.NewPCG(seed, 0))} }

func (c *chance) float() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.Float64()
}

func (c *chance) of(p float64) bool { return c.float() < p }

func (c *chance) below(n int) int { return int(c.float() * float64(n)) }

// upTo returns a time up to d, in whole milliseconds, so that events coincide.
func (c *chance) upTo(d time.Duration) time.Duration { return time.Duration(c.below(int(d/ms)+1)) * ms }

// point is a place where foreign code runs, and may panic or end its goroutine.
type point uint

const (
	atOpening point = 1 << iota // an inner interceptor, before and after the attempt
	atSending
	atReceiving
	atHeader
	atCodec
	atObserver
	atClassifier
	atBreaker
	atBudget
	atResume
	atFinish
)

// panics makes foreign code panic.
type panics struct {
	*chance

	active atomic.Uint64 // the points
	seen   atomic.Int64
}

var errFault = errors.New("a panic by chance")

// at panics at random, or ends the goroutine: only in the application's own ones, since elsewhere that ends the program, or leaves a call waiting
// (NOT-HANDLED.md).
func (f *panics) at(p point) {
	if point(f.active.Load())&p == 0 || !f.of(0.02) || !within(guarded) {
		return
	}
	f.seen.Add(1)
	if f.of(0.5) && !within("runtime.Goexit", "runtime.gopanic") { // an endless call cannot be cleaned up
		runtime.Goexit()
	}
	panic(errFault)
}

// guarded is the function in which the application's goroutines handle panics.
const guarded = "proof_test.(*caller).guarded"

// within reports whether this goroutine is running one of these functions.
func within(functions ...string) bool {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(frame.Function, f) }) {
			return true
		}
		if !more {
			return false
		}
	}
}

// ledger is a budget that checks that every extra attempt ends once.
type ledger struct {
	budget.Budget
	*findings
	*panics

	running atomic.Int64 // extra attempts
}

func (l *ledger) Observe(now time.Time, e budget.Event) {
	l.Budget.Observe(now, e)
	if e != budget.EventAttemptFailed {
		l.at(atBudget)
	}
}

func (l *ledger) Allow(now time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	l.at(atBudget)
	answer, inner := l.Budget.Allow(now, c)
	if answer != budget.Yes {
		return answer, nil
	}
	l.running.Add(1)
	var told atomic.Bool
	return budget.Yes, func(now time.Time, how budget.End) {
		if told.Swap(true) {
			l.add("an extra attempt ends twice")
		}
		l.running.Add(-1)
		if inner != nil {
			inner(now, how)
		}
		l.at(atBudget)
	}
}

// circuit is a breaker that refuses at random, and checks that it is informed once of each attempt's end.
type circuit struct {
	*findings
	*panics

	running atomic.Int64
}

func (*circuit) Open(context.Context, int) error { return nil }

func (c *circuit) Allow(context.Context, int) (func(error), error) {
	c.at(atBreaker)
	if c.of(0.02) {
		return nil, errors.New("refused by chance")
	}
	c.running.Add(1)
	var told atomic.Bool
	return func(error) {
		if told.Swap(true) {
			c.add("the breaker is told twice")
		}
		c.running.Add(-1)
		c.at(atBreaker)
	}, nil
}

// story has the events that observers received for one call; it is in the call's context.
type story struct {
	*findings

	name     string
	most     int
	parallel bool        // goroutines of ours may tell events too, so that two may come at the same time, and in another order
	busy     atomic.Bool // an event is handled

	told     sync.Mutex // guards both below
	attempts map[int]bool
	ended    int

	single bool        // at most one attempt: the stream is gRPC's own
	inside atomic.Bool // an inner interceptor has answered
}

type storyKey struct{}

// listener returns an observer which checks that each call's events come once per attempt; one at a time and in order, unless attempts may run in
// parallel.
func listener(f *panics) interceptor.Observer {
	hear := func(ctx context.Context, event func(*story)) {
		s, ok := ctx.Value(storyKey{}).(*story)
		if !ok {
			return
		}
		if s.busy.Swap(true) && !s.parallel {
			s.add("%s: two events at a time", s.name)
		}
		s.told.Lock()
		event(s)
		s.told.Unlock()
		s.busy.Store(false)
		f.at(atObserver)
	}
	return interceptor.Observer{
		Attempt: func(ctx context.Context, e interceptor.Event) {
			hear(ctx, func(s *story) {
				if s.attempts[e.Attempt] || s.ended > 0 || e.Attempt > s.most {
					s.add("%s: attempt %d of %d ends twice or late: %v", s.name, e.Attempt, s.most, s.attempts)
				}
				s.attempts[e.Attempt] = true
			})
		},
		Decision: func(ctx context.Context, e interceptor.Event) {
			hear(ctx, func(s *story) {
				slow := e.Code == codes.DeadlineExceeded && e.Err == nil
				late := slow && s.attempts[e.Attempt] && !s.parallel
				early := !slow && e.Attempt > 0 && !s.attempts[e.Attempt] && f.active.Load() == 0 // else a panic may have cut something off
				if s.ended > 0 || e.Attempt > s.most || late || early || !slices.Contains(decision.Reasons(), e.Reason) {
					s.add("%s: a decision about attempt %d, of %v: %+v", s.name, e.Attempt, s.attempts, e)
				}
			})
		},
		CallEnd: func(ctx context.Context, e interceptor.CallEnd) {
			hear(ctx, func(s *story) {
				s.single = s.single || e.Mode == policy.ModeOff
				whole := len(s.attempts) == e.Attempts && slices.Contains(decision.Reasons(), e.Reason)
				s.ended++
				if s.ended > 1 || !whole && f.active.Load() == 0 { // else a panic may have cut something off
					s.add("%s: the call ends after %d attempts, and of %v was told: %s", s.name, e.Attempts, s.attempts, e.Reason)
				}
			})
		},
		Diagnostic: func(policy.Diagnostic) {},
		ModeChange: func(_, _ interceptor.ModeSwitch) {},
	}
}
