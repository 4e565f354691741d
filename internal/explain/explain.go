// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain shows what a policy does for a method: which entry applies, and what happens, attempt by attempt, if every
// attempt fails in the same way. It drives the interceptor's own engine.
package explain

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// Question is what to explain.
type Question struct {
	Method      string // "/service/method"
	Code        codes.Code
	Pushback    string // of the trailer, or ""
	Deadline    time.Duration
	Latency     time.Duration // of each attempt, before it fails
	Hang        bool          // no attempt ever gets a response
	Down        bool          // from the call's start on, no connection can be made
	BudgetEmpty bool
	AllSlow     bool // all of the method's last answers were very slow
	NotProven   bool // too many of them were slow
	MaxAttempts int  // the cap of the Retrier, at least 1

	DefaultTimeout time.Duration // of unary calls without a deadline; 0: none
}

// Condition is something that is true or false: a flag of stagger explain, and a checkbox of the debug page.
type Condition struct {
	Holds *bool
	Name  string
	Says  string
	Adds  string // to the sentence about what happens; "" if that has it already
}

// On reports whether the condition holds, for a template.
func (c Condition) On() bool { return *c.Holds }

// Conditions returns those of the question.
func (q *Question) Conditions() []Condition {
	return []Condition{
		{&q.Hang, "hang", "no attempt ever gets a response", ""},
		{&q.Down, "down", "no connection can be made, from the call's start on", ""},
		{&q.BudgetEmpty, "budget-empty", "the budget refuses every extra attempt", ""},
		{
			&q.AllSlow, "slow-everywhere",
			"all of the method's last 10 responses were very slow", "all of the method's last 10 responses were very slow",
		},
		{
			&q.NotProven, "not-proven-fast",
			"3 of the method's last 10 responses were slow", "3 of the method's last 10 responses were slow",
		},
	}
}

// Answer is the explanation.
type Answer struct {
	Question
	Effect
	Playback

	Limit     time.Duration // of the whole call; 0: none
	ByDefault bool          // it is the default, since the call has no deadline
}

// Playback is the course of a call.
type Playback struct {
	Events []Event
	Sent   []time.Duration // when each attempt is sent
	End    attempts.End
	At     time.Duration // when it ends
	Never  bool          // it does not end
}

// Event is an attempt that failed, or is slow, and the consequence.
type Event struct {
	Attempt        int
	Sent, At       time.Duration // since the call's start
	Slow           bool          // the attempt has not ended
	Decision       decision.Decision
	Down           bool          // the next attempt waits for a connection
	Least, Longest time.Duration // possible waits; 0 without one
}

// Explain plays a call of which every attempt fails in the same way, or none ends. drawn are the random numbers of the decisions, at least one; the last is used for all
// further ones. An attempt that is slow and then fails has two decisions.
func Explain(set *methods.Set, q Question, drawn []float64) Answer {
	a := Answer{Question: q, Effect: EffectOf(set, q.Method, q.MaxAttempts), Limit: q.Deadline}
	if a.Policy == nil {
		return a
	}
	a.setLimit(set)
	a.Playback = a.playCall(a.Limit, drawn)
	// A longer wait might not fit before the deadline, so the bounds are those of a call without one, if it takes the same course.
	least, longest := a.playCall(0, []float64{0}).Events, a.playCall(0, []float64{almostOne}).Events
	for i := range a.Events {
		e := &a.Events[i]
		if i < len(least) && i < len(longest) && e.sameAs(least[i]) && e.sameAs(longest[i]) && e.Decision.Reason != policy.ReasonFollowed {
			e.Least, e.Longest = least[i].Decision.Delay, longest[i].Decision.Delay
		}
	}
	return a
}

// setLimit lowers the limit of the call to the entry's timeout. A unary call without either has the default, and so has a call
// that no descriptor shows to be a stream.
func (a *Answer) setLimit(set *methods.Set) {
	timeout := a.Policy.Timeout()
	switch {
	case timeout > 0 && (a.Limit == 0 || timeout < a.Limit):
		a.Limit = timeout
	case a.Limit == 0 && !set.Streams(a.Method):
		a.Limit = a.DefaultTimeout
		a.ByDefault = a.Limit > 0
	}
}

// almostOne is the largest random number.
const almostOne = 1 - 1.0/(1<<53)

// Draw draws the random numbers of an explanation.
func Draw(seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 0))
	drawn := make([]float64, 10)
	for i := range drawn {
		drawn[i] = random.Float64()
	}
	return drawn
}

func (e *Event) sameAs(other Event) bool { return e.Attempt == other.Attempt && e.Slow == other.Slow }

// playCall drives the engine through all attempts of a call; a limit of 0 is none.
func (a *Answer) playCall(limit time.Duration, drawn []float64) (p Playback) {
	var (
		call    attempts.Call
		running = map[int]time.Duration{}   // when they end, by their numbers
		local   = map[int]attempts.Result{} // of cancelled attempts
		failed  = a.failure()
		now     = func() attempts.Now {
			n := attempts.Now{At: p.At, Wall: time.Unix(0, 0).Add(p.At), Chance: drawn[min(len(p.Events), len(drawn)-1)]}
			if a.Policy.Mode() == policy.ModeOff {
				n.Off = policy.ReasonModeOff
			}
			if a.Down {
				n.Down, n.Outage = true, p.At
			}
			return n
		}
		cancel = func(n int, code codes.Code) {
			running[n], local[n] = p.At, result(status.New(code, ""), true)
		}
	)
	stop := cmp.Or(limit, attempts.Never)
	for step := call.Start(a.engineSettings(limit), now()); ; {
		for _, n := range step.Cancel {
			cancel(n, codes.Canceled)
		}
		if step.Decided > 0 {
			p.Events = append(p.Events, Event{Attempt: step.Decided, Sent: p.Sent[step.Decided-1], At: p.At, Slow: step.TimedOut, Decision: step.Decision, Down: a.Down})
		}
		if step.Send > 0 {
			p.Sent = append(p.Sent, p.At)
			running[step.Send] = attempts.Never
			if !a.Hang && (!a.Down || !a.waitsInGRPC()) {
				running[step.Send] = p.At + a.Latency
			}
		}
		if step.Over {
			p.End = *call.End()
			return p
		}
		n, ends := first(running)
		if a.Down && step.Slow {
			step.Wake = attempts.Never // the call would look again and again whether there is a connection
		}
		switch {
		case p.At < stop && stop < attempts.Never && stop <= min(ends, step.Wake):
			p.At = stop
			step = call.Stop(policy.ReasonDeadlineExceeded, now())
			for n := range running {
				cancel(n, codes.DeadlineExceeded)
			}
		case ends <= step.Wake && ends < attempts.Never:
			p.At = ends
			delete(running, n)
			r, cancelled := local[n]
			if !cancelled {
				r = failed
			}
			step = call.Ended(n, r, now())
		case step.Wake < attempts.Never:
			p.At = step.Wake
			step = call.Wake(now())
		default:
			p.Never = true
			return p
		}
	}
}

// waitsInGRPC reports whether attempts wait in gRPC for a connection.
func (a *Answer) waitsInGRPC() bool {
	wait := compiled.Of(a.Policy).WaitForReady
	return wait != nil && *wait
}

// first returns the attempt that ends first, of several the oldest; Never if none ends.
func first(running map[int]time.Duration) (n int, ends time.Duration) {
	ends = attempts.Never
	for _, i := range slices.Sorted(maps.Keys(running)) {
		if running[i] < ends {
			n, ends = i, running[i]
		}
	}
	return n, ends
}

func (a *Answer) engineSettings(limit time.Duration) *attempts.Settings {
	s := &attempts.Settings{
		Policy: a.Policy, MaxAttempts: a.MaxAttempts, Deadline: attempts.Never, ByDefault: a.ByDefault, Safe: a.Safe,
		Outage: attempts.OutageWait{Longest: a.Policy.MaxConnectionWait(), ByGRPC: a.waitsInGRPC()},
		Budget: budget.Unlimited, Slots: slots{}, InSequence: a.Alone, AnnounceOnly: a.Policy.Mode() == policy.ModeObserve,
	}
	if a.Alone {
		s.Kind = attempts.Upload
	}
	if limit > 0 {
		s.Deadline = limit
	}
	if a.BudgetEmpty {
		s.Budget = empty{}
	}
	s.Method = known{a.evidence()}
	return s
}

// failure returns how each attempt ends.
func (a *Answer) failure() attempts.Result {
	if a.Down {
		r := result(status.New(codes.Unavailable, "no connection"), false)
		r.Origin = decision.Unsent
		return r
	}
	r := result(status.New(a.Code, ""), false)
	if a.Pushback != "" {
		r.Trailer = metadata.Pairs(decision.PushbackTrailer, a.Pushback)
	}
	return r
}

func result(s *status.Status, contextEnded bool) attempts.Result {
	return attempts.Result{Outcome: decision.Outcome{Status: s}, Err: s.Err(), ContextEnded: contextEnded}
}

// empty is a budget that allows nothing.
type empty struct{}

func (empty) Observe(time.Time, budget.Event) {}

func (empty) Allow(time.Time, budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	return budget.No, nil
}

// slots implements [attempts.Slots] without a limit.
type slots struct{}

func (slots) TakeSlot(attempts.Wait) bool { return true }
func (slots) MoveSlot(_, _ attempts.Wait) {}
func (slots) ReleaseSlot(attempts.Wait)   {}

// evidence returns what the question says of the method's last answers.
func (a *Answer) evidence() evidence.Evidence {
	e := evidence.Evidence{Known: evidence.Remembered}
	switch {
	case a.AllSlow:
		e.Slow, e.VerySlow = evidence.Remembered, evidence.Remembered
	case a.NotProven:
		e.Slow = evidence.MostSlow + 1
	}
	return e
}

// known implements [attempts.Method].
type known struct{ shows evidence.Evidence }

func (known) Answered(time.Duration, evidence.Answer) {}
func (known) Outlasted(_, _ time.Duration)            {}
func (known) Failed(time.Duration)                    {}
func (known) Recovered()                              {}
func (known) FailsFor(time.Duration) time.Duration    { return 0 }
func (known) AnsweredSince(time.Duration) bool        { return false }

// Evidence returns what the question says.
func (k known) Evidence() evidence.Evidence { return k.shows }

func (known) Quantile() time.Duration { return 0 }
