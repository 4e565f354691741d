// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/effect"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// question is what is to be explained.
type question struct {
	method      string
	code        codes.Code
	pushback    string
	deadline    time.Duration
	latency     time.Duration // of each attempt, before it fails
	hang        bool          // no attempt is ever answered
	inRetry     bool
	budgetEmpty bool
	breakerOpen bool // after the first attempt
}

// answer is the explanation.
type answer struct {
	question
	effect.Effect
	playback

	limit time.Duration // of the whole call; 0: none
}

// playback is what a call does.
type playback struct {
	events []event
	sent   []time.Duration // when each attempt is sent
	end    attempts.End
	at     time.Duration // when it ends
	never  bool          // it does not end
}

// event is an attempt that has failed, or is slow, and what follows.
type event struct {
	attempt        int
	sent, at       time.Duration // since the call's start
	slow           bool          // the attempt has not ended
	decision       policy.Decision
	waits          bool          // or would, if there were time
	least, longest time.Duration // that the wait could have been
}

// chances are what the random numbers of an explanation are: one for each decision, of which an attempt that is
// slow and then fails has two.
type chances [2 * interceptor.DefaultMaxAttempts]float64

// explain lets every attempt fail in the same way, or none end.
func explain(set *policy.Set, known api.API, q question, drawn chances) answer {
	a := answer{question: q, Effect: effect.Of(set, known, q.method), limit: q.deadline}
	if a.Policy == nil {
		return a
	}
	if timeout := a.Policy.Spec().Timeout; timeout > 0 && (a.limit == 0 || timeout < a.limit) {
		a.limit = timeout
	}
	a.playback = a.play(a.limit, drawn)
	for i := range a.events {
		e := &a.events[i]
		if !e.decision.Retry && e.decision.Reason != policy.ReasonDeadlineTooClose {
			continue
		}
		least, ok := a.wait(i, drawn, 0)
		longest, okToo := a.wait(i, drawn, almostOne)
		e.waits, e.least, e.longest = ok && okToo && longest > 0, least, longest
	}
	return a
}

// almostOne is the largest chance.
const almostOne = 1 - 1.0/(1<<53)

// wait is how long the wait after event i is with another chance. It is played without a deadline, since a longer
// wait might not fit before that; false if the call then goes another way.
func (a *answer) wait(i int, drawn chances, chance float64) (time.Duration, bool) {
	drawn[min(i, len(drawn)-1)] = chance
	other := a.play(0, drawn).events
	if i >= len(other) || other[i].attempt != a.events[i].attempt || other[i].slow != a.events[i].slow {
		return 0, false
	}
	return other[i].decision.Delay, true
}

// play drives the engine of calls through all attempts; a limit of 0 is none.
func (a *answer) play(limit time.Duration, drawn chances) (p playback) {
	var (
		call    attempts.Call
		running = map[int]time.Duration{}   // until when, by their numbers
		local   = map[int]attempts.Result{} // of attempts that were cancelled
		failed  = a.failed()
		now     = func() attempts.Now {
			return attempts.Now{At: p.at, Wall: time.Unix(0, 0).Add(p.at), Chance: drawn[min(len(p.events), len(drawn)-1)]}
		}
		cancel = func(n int, code codes.Code) {
			running[n], local[n] = p.at, result(status.New(code, ""), true)
		}
	)
	for step := call.Start(a.settings(limit), now()); ; {
		for _, n := range step.Cancel {
			cancel(n, codes.Canceled)
		}
		if step.Decided > 0 {
			p.events = append(p.events, event{attempt: step.Decided, sent: p.sent[step.Decided-1], at: p.at, slow: step.TimedOut, decision: step.Decision})
		}
		if step.Send > 0 {
			p.sent = append(p.sent, p.at)
			running[step.Send] = attempts.Never
			if !a.hang {
				running[step.Send] = p.at + a.latency
			}
		}
		if step.Over {
			p.end = call.End()
			return p
		}
		n, ends := first(running)
		switch {
		case limit > 0 && p.at < limit && limit <= min(ends, step.Wake):
			p.at = limit
			step = call.Stop(policy.ReasonDeadlineExceeded, now())
			for n := range running {
				cancel(n, codes.DeadlineExceeded)
			}
		case ends <= step.Wake && ends < attempts.Never:
			p.at = ends
			delete(running, n)
			r, cancelled := local[n]
			if !cancelled {
				r = failed
			}
			step = call.Ended(n, r, now())
		case step.Wake < attempts.Never:
			p.at = step.Wake
			step = call.Wake(now())
		default:
			p.never = true
			return p
		}
	}
}

// first is the attempt that ends first, of several the oldest; Never if none does.
func first(running map[int]time.Duration) (n int, ends time.Duration) {
	ends = attempts.Never
	for _, i := range slices.Sorted(maps.Keys(running)) {
		if running[i] < ends {
			n, ends = i, running[i]
		}
	}
	return n, ends
}

func (a *answer) settings(limit time.Duration) attempts.Settings {
	s := attempts.Settings{
		Policy: a.Policy, MaxAttempts: interceptor.DefaultMaxAttempts, Deadline: attempts.Never,
		Facts: facts{a.Safe, a.inRetry}, Budget: budget.Unlimited, Slots: slots{},
	}
	if limit > 0 {
		s.Deadline, s.Wall = limit, time.Unix(0, 0).Add(limit)
	}
	if a.budgetEmpty {
		s.Budget = budget.Empty
	}
	if a.breakerOpen {
		s.Breaker = breaker{}
	}
	return s
}

// failed is how each attempt ends.
func (a *answer) failed() attempts.Result {
	r := result(status.New(a.code, ""), false)
	if a.pushback != "" {
		r.Trailer = metadata.Pairs(policy.PushbackTrailer, a.pushback)
	}
	return r
}

func result(s *status.Status, local bool) attempts.Result {
	return attempts.Result{Outcome: policy.Outcome{Status: s}, Err: s.Err(), Local: local}
}

// facts implements [attempts.Facts].
type facts struct{ safe, inRetry bool }

func (f facts) Safe() bool       { return f.safe }
func (f facts) InRetry() bool    { return f.inRetry }
func (facts) Off() policy.Reason { return "" }

// slots implements [attempts.Slots] without a limit.
type slots struct{}

func (slots) Enter() bool { return true }
func (slots) Leave()      {}

// breaker implements [attempts.Breaker]: it opens when the first attempt has begun.
type breaker struct{}

func (breaker) Open() bool                  { return true }
func (breaker) Allow() (func(error), error) { return func(error) {}, nil }
