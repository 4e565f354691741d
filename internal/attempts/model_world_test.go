// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package attempts

import (
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
)

// dice makes choices from bytes, and chooses 0 when none are left.
type dice []byte

// roll returns a number less than n, which is at most 256.
func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % n
}

// one returns true in one of n cases, and false when no bytes are left.
func (d *dice) one(n int) bool { return d.roll(n) == n-1 }

// modelWorld is a world whose breaker refuses at random and whose callbacks panic at random. It records forbidden uses.
type modelWorld struct {
	world

	dice    *dice
	fuse    int // callbacks until one panics; 0: none does
	fault   string
	fails   int
	allowed int     // by the breaker
	charges int     // questions to the budget
	waits   Wait    // of its slot
	done    []error // the breaker's reports in this event
}

func (w *modelWorld) violate(what string) {
	if w.fault == "" {
		w.fault = what
	}
}

// errFuse is the value of the callbacks' panics.
var errFuse = errors.New("a callback panics")

// called panics when the fuse is used up.
func (w *modelWorld) called() {
	if w.fuse > 0 {
		w.fuse--
		if w.fuse == 0 {
			panic(errFuse)
		}
	}
}

func (w *modelWorld) Observe(now time.Time, e budget.Event) {
	if w.finished != 0 {
		w.violate("the budget is told of an event after the call's end")
	}
	switch e {
	case budget.EventAnswered, budget.EventUnconnected:
	case budget.EventAttemptFailed:
		w.fails++
	default:
		if len(w.open) > 0 {
			w.violate("the budget is told of the call's end before an attempt's")
		}
	}
	w.world.Observe(now, e)
	w.called()
}

func (w *modelWorld) Allow(now time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	w.called()
	w.charges++
	if w.dice.one(6) { // all fail, by what this budget knows
		w.later = 1
	}
	answer, inner := w.world.Allow(now, c)
	if answer != budget.Yes {
		return answer, nil
	}
	return budget.Yes, func(now time.Time, how budget.End) {
		inner(now, how)
		w.called()
	}
}

func (w *modelWorld) TakeSlot(kind Wait) bool {
	w.called()
	ok := w.world.TakeSlot(kind)
	if ok {
		w.waits = kind
	}
	if w.entered > 1 {
		w.violate("a call has two wait slots")
	}
	return ok
}

func (w *modelWorld) MoveSlot(from, to Wait) {
	if from != w.waits {
		w.violate("a wait slot is moved that it does not have")
	}
	w.waits = to
}

func (w *modelWorld) ReleaseSlot(kind Wait) {
	if kind != w.waits {
		w.violate("a wait slot is left that was not entered")
	}
	w.waits = NoWait
	w.world.ReleaseSlot(kind)
	w.called()
}

// modelBreaker is the world as a breaker that refuses one of four attempts.
type modelBreaker struct{ *modelWorld }

func (b modelBreaker) Open(n int) error {
	b.called()
	b.askedFor(n)
	if b.dice.one(8) {
		return errOpen
	}
	return nil
}

// askedFor checks that the breaker is asked for the next attempt. It has let all others pass.
func (b modelBreaker) askedFor(n int) {
	if n != b.allowed+1 {
		b.violate("the breaker is asked for another attempt than the next")
	}
}

func (b modelBreaker) Allow(n int) (func(error), error) {
	b.called()
	b.askedFor(n)
	if b.dice.one(8) {
		return nil, errOpen
	}
	b.allowed++
	b.calls++
	done := false
	return func(err error) {
		b.done = append(b.done, err)
		if done {
			b.violate("the breaker is told of an attempt twice")
		}
		done = true
		b.calls--
		b.called()
	}, nil
}

// modelMethod is the world as the method.
type modelMethod struct{ *modelWorld }

func (k modelMethod) Quantile() time.Duration {
	k.called()
	return k.quantile
}

func (k modelMethod) Evidence() evidence.Evidence {
	k.called()
	return k.shows
}

func (k modelMethod) AnsweredSince(time.Duration) bool { return false }

func (k modelMethod) Failed(time.Duration) {}

func (k modelMethod) Recovered() {}

func (k modelMethod) FailsFor(time.Duration) time.Duration { return 0 }

func (k modelMethod) Outlasted(_, least time.Duration) {
	k.took(least)
	k.called()
}

func (k modelMethod) Answered(_ time.Duration, a evidence.Answer) {
	if a.Accepted {
		k.took(a.Took)
	}
	k.called()
}

// modelAdmission is the world as admission, which refuses one of eight calls.
type modelAdmission struct{ *modelWorld }

func (a modelAdmission) Open(_, left time.Duration) bool {
	a.called()
	return !a.dice.one(8) || left == Never
}

func (a modelAdmission) Allow(attempt int, now, left time.Duration, enforced bool) (running int, would bool) {
	would = attempt == 1 && !a.Open(now, left)
	if would && enforced {
		return 0, false
	}
	a.counted++
	return a.counted, would
}

func (a modelAdmission) Done(_ time.Duration, e admitting.End) {
	if e.Running < 1 {
		a.violate("an attempt has ended for admission, and did not run")
	}
	a.counted--
	if a.counted < 0 {
		a.violate("admission hears of more ends than attempts")
	}
	a.called()
}

func (modelAdmission) State() admitting.State { return admitting.State{} }

func (k modelMethod) took(d time.Duration) {
	if d < 0 {
		k.violate("an attempt took less than no time")
	}
	k.recorded = append(k.recorded, d)
}

// modelPolicies returns policies of all kinds. They are always the same, so that bytes have the same meaning.
func modelPolicies() []*policy.Policy {
	random := rand.New(rand.NewPCG(1, 2))
	one := func(n int) bool { return random.IntN(n) == 0 }
	randomBackoff := func() backoff.Config {
		b := backoff.Config{Initial: at(1 + random.IntN(100)), Max: at(50 + random.IntN(500)), Multiplier: 1 + 2*random.Float64()}
		b.Jitter = []backoff.Jitter{
			"", backoff.JitterNone, backoff.JitterFull, backoff.JitterEqual, backoff.JitterDecorrelated, backoff.JitterProportional,
		}[random.IntN(6)]
		return b
	}
	retry := func() *spec.Retry {
		r := policytest.UsualRetry()
		r.MaxAttempts, r.Backoff = 2+random.IntN(4), randomBackoff()
		r.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Aborted}
		if one(3) {
			r.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}
		}
		if one(3) {
			own := randomBackoff()
			r.PerCode = []spec.Code{{Codes: []codes.Code{codes.Aborted}, MaxAttempts: 1 + random.IntN(r.MaxAttempts), Backoff: &own}}
		}
		if one(2) {
			r.PerAttemptTimeout = at(1 + random.IntN(200))
			r.OnAttemptTimeout = []string{"", "RETRY", "HEDGE"}[random.IntN(3)]
		}
		r.Chain = []string{"", "ALLOW", "SUPPRESS"}[random.IntN(3)]
		return &r
	}
	hedge := func() *spec.Hedge {
		h := spec.Hedge{MaxAttempts: 2 + random.IntN(4), HedgingDelay: at(random.IntN(3) * random.IntN(60)), NonFatalStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted}}
		if one(2) {
			h.Quantile = 0.9
		}
		return &h
	}
	list := make([]*policy.Policy, 256)
	for i := range list {
		var s spec.Policy
		switch i % 8 {
		case 0: // one attempt
		case 1, 2, 3, 4, 5:
			s.Retry = retry()
		default:
			s.Hedge = hedge()
		}
		if i%8 != 0 && one(3) {
			s.MaxPushback = at(100)
		}
		p, err := compiled.NewPolicy(s)
		if err != nil {
			panic(err)
		}
		list[i] = p
	}
	return list
}
