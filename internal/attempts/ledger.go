// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/admitting"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// held is everything that an attempt holds, from the decision until its end.
type held struct {
	permit  permit      // of an extra attempt
	slot    bool        // a wait slot
	done    func(error) // of the breaker
	running int         // attempts when it was sent, by admission; 0: admission does not count it
}

// permit is the budget's permission for an extra attempt. The zero value is none.
type permit struct {
	held  bool
	ended func(time.Time, budget.End) // nil: the budget needs not hear how the attempt ends
}

// ledger records everything that a call has acquired. Every entry is released exactly once: by release, or, after a panic of a
// callback, by releaseAll.
//
//	                    ┌─► answered, left ──────────────────────────────┐
//	first, pending ─► sent ─► ended ──┬─► spare: the successor's         ├─► released
//	           │                      └──────────────────────────────────┤
//	           └─► given up ─────────────────────────────────────────────┘
type ledger struct {
	set     *Settings // the call's
	pending held      // by the attempt that is to be sent
	spare   held      // by one that was not sent, for its successor, while the event lasts
	would   bool      // admission would have refused the call
}

// outcome is the result of an attempt for those who gave it something.
type outcome struct {
	unused bool  // no server has seen the attempt
	helped bool  // it was answered in time: with OK, or an error that no retry can improve
	err    error // the result
}

// end returns the outcome for the budget.
func (o outcome) end() budget.End {
	switch {
	case o.unused:
		return budget.EndUnsent
	case o.helped:
		return budget.EndHelped
	default:
		return budget.EndFailed
	}
}

// release releases everything that h holds, even if a callback panics.
func (l *ledger) release(h *held, o outcome, at time.Duration) {
	was := *h
	*h = held{}
	if was.done != nil {
		defer was.done(o.err)
	}
	if was.permit.ended != nil {
		defer was.permit.ended(clock.Time(at), o.end())
	}
	if was.running > 0 {
		defer l.set.Admission.Done(at, admitting.End{Running: was.running})
	}
	if was.slot {
		l.set.Slots.ReleaseSlot()
	}
}

// releaseAll releases everything after a panic, and drops further panics.
func (l *ledger) releaseAll(at time.Duration, ended *held, running []attempt) {
	drop := func(h *held, o outcome) {
		defer func() { _ = recover() }()
		l.release(h, o, at)
	}
	drop(&l.pending, outcome{unused: true, err: ErrPanicked})
	drop(&l.spare, outcome{unused: true})
	drop(ended, outcome{err: ErrPanicked})
	for i := range running {
		drop(&running[i].held, outcome{err: ErrPanicked})
	}
}

// takeSlot takes a wait slot for the pending attempt, if it has none.
func (l *ledger) takeSlot() bool {
	if !l.pending.slot {
		l.pending.slot = l.set.Slots.TakeSlot()
	}
	return l.pending.slot
}

// releaseSlot releases the wait slot.
func (l *ledger) releaseSlot() {
	if l.pending.slot {
		l.pending.slot = false
		l.set.Slots.ReleaseSlot()
	}
}

// allow asks the gates for permission to send attempt n of a call with this time left, which is pending. It returns the reason and the error
// of a refusal, or "".
func (l *ledger) allow(n int, at, left time.Duration) (policy.Reason, error) {
	if gate := l.set.Admission; gate != nil {
		running, would := gate.Allow(n, at, left, l.set.Enforced)
		if running == 0 {
			return policy.ReasonOverloaded, errOverloaded
		}
		l.pending.running, l.would = running, l.would || would
	}
	if gate := l.set.Breaker; gate != nil {
		done, err := gate.Allow(n)
		if err != nil {
			return policy.ReasonBreakerOpen, err
		}
		l.pending.done = done
	}
	return "", nil
}

// allowExtra asks the budget for the pending attempt. An attempt that was not sent leaves its permit to its successor, and an unsent
// first attempt, which had none, makes its successor free: a budget pays only for requests that a server sees.
func (l *ledger) allowExtra(at time.Duration, cause budget.Cause, unsent bool) bool {
	switch {
	case l.spare.permit.held:
		l.pending.permit, l.spare.permit = l.spare.permit, permit{}
	case unsent:
		l.pending.permit = permit{held: true}
	default:
		ended, ok := l.set.Budget.Allow(clock.Time(at), cause)
		l.pending.permit = permit{ok, ended}
	}
	return l.pending.permit.held
}

// movePending gives what the pending attempt holds, but for the slot, to one that is sent.
func (l *ledger) movePending(to *held) {
	*to = l.pending
	to.slot = false
	l.pending = held{slot: l.pending.slot}
}

// leave tells admission how an attempt ended.
func (l *ledger) leave(h *held, at time.Duration, e admitting.End) {
	if h.running > 0 {
		e.Running = h.running
		h.running = 0
		l.set.Admission.Done(at, e)
	}
}
