// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/policy"
)

// held is everything that an attempt holds, from the decision until its end.
type held struct {
	permit  permit      // of an extra attempt
	done    func(error) // of the breaker
	running int         // attempts when it was sent, by admission; 0: admission does not count it
}

// permit is the budget's permission for an extra attempt. The zero value is none.
type permit struct {
	held    bool
	resumes bool                        // a stream that ran for long: the attempt needs no permission, even after a wait for a connection
	ended   func(time.Time, budget.End) // nil: the budget needs not hear how the attempt ends
}

// ledger records everything that a call has acquired. Every entry is released exactly once: by release, or, after a panic of a
// callback, by releaseAll.
//
//	first, pending ─► sent ─┬─► answered: admission is told ─────────────┬─► released
//	   ▲       │            └─► ended ──┬────────────────────────────────┤
//	   │       └─► given up ────────────│────────────────────────────────┤
//	   │                                └─► spare ── the event is over ──┘
//	   └── its permit is the successor's ─────┘
type ledger struct {
	set     *Settings // the call's
	pending held      // by the attempt that is to be sent
	slot    Wait      // a wait slot, while that waits
	spare   permit    // of an attempt that was not sent, for its successor, while the event lasts
	would   bool      // admission would have refused the call
}

// settlement is what budget and breaker are told of the end of an attempt.
type settlement struct {
	unused   bool  // the attempt costs nothing: see [Result.unused]
	refunded bool  // a stream was cut that is resumed, after a long attempt: it costs nothing
	helped   bool  // it was answered in time: with OK, or an error that speaks of the request
	local    bool  // err says nothing of the server
	err      error // the result's, as judged
}

// forBreaker returns the error that a breaker is told.
func (s settlement) forBreaker() error {
	if s.local && s.err != nil {
		return &localError{s.err}
	}
	return s.err
}

// end returns it for the budget.
func (s settlement) end() budget.End {
	switch {
	case s.unused, s.refunded:
		return budget.EndUnsent
	case s.helped:
		return budget.EndHelped
	default:
		return budget.EndFailed
	}
}

// release releases everything that h holds, even if a callback panics.
func (l *ledger) release(h *held, s settlement, at time.Duration) {
	was := *h
	*h = held{}
	if was.done != nil {
		defer was.done(s.forBreaker())
	}
	if was.permit.ended != nil {
		defer was.permit.ended(clock.Time(at), s.end())
	}
	if was.running > 0 {
		defer l.set.Admission.Done(at, admitting.End{Running: was.running})
	}
}

// releasePending releases what the pending attempt holds.
func (l *ledger) releasePending(at time.Duration) {
	defer l.release(&l.pending, settlement{unused: true}, at)
	l.releaseSlot()
}

// releaseSpare releases the permit that no successor has taken.
func (l *ledger) releaseSpare(at time.Duration) {
	spare := held{permit: l.spare}
	l.spare = permit{}
	l.release(&spare, settlement{unused: true}, at)
}

// releaseAll releases everything after a panic. Further panics replace the first one.
func (l *ledger) releaseAll(at time.Duration, ended *held, running []attempt) {
	defer l.releaseSlot()
	defer l.release(&l.pending, settlement{unused: true, local: true, err: ErrPanicked}, at)
	defer l.releaseSpare(at)
	defer l.release(ended, settlement{local: true, err: ErrPanicked}, at)
	for i := range running {
		defer l.release(&running[i].held, settlement{local: true, err: ErrPanicked}, at)
	}
}

// takeSlot takes a wait slot for the pending attempt. One that it has becomes a slot of this wait.
func (l *ledger) takeSlot(w Wait) bool {
	switch {
	case l.slot == w:
	case l.slot != NoWait:
		l.set.Slots.MoveSlot(l.slot, w)
		l.slot = w
	case l.set.Slots.TakeSlot(w):
		l.slot = w
	}
	return l.slot == w
}

// releaseSlot releases the wait slot.
func (l *ledger) releaseSlot() {
	if was := l.slot; was != NoWait {
		l.slot = NoWait
		l.set.Slots.ReleaseSlot(was)
	}
}

// allow asks the gates for permission to send attempt n, the pending one, of a call with this time left. It returns the reason and the
// error of a refusal, or "".
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

// allowExtra asks the budget for the pending attempt. An attempt that was not sent leaves its permit to its successor. The successor of an
// unsent first attempt, which had none, is free: a budget pays only for requests that a server sees. So is an attempt that resumes a stream
// that ran for long, since that is no failure.
func (l *ledger) allowExtra(at time.Duration, cause budget.Cause, free bool) budget.Answer {
	switch {
	case l.spare.held:
		l.pending.permit, l.spare = l.spare, permit{}
		return budget.Yes
	case free:
		l.pending.permit = permit{held: true}
		return budget.Yes
	default:
		allowed, ended := l.set.Budget.Allow(clock.Time(at), cause)
		if allowed == budget.Yes {
			l.pending.permit = permit{held: true, ended: ended}
		}
		return allowed
	}
}

// movePending gives what the pending attempt holds to one that is sent.
func (l *ledger) movePending(to *held) {
	*to, l.pending = l.pending, held{}
}

// tellAdmission tells admission how an attempt ended, if it counts it.
func (l *ledger) tellAdmission(h *held, at time.Duration, e admitting.End) {
	if h.running > 0 {
		e.Running = h.running
		h.running = 0
		l.set.Admission.Done(at, e)
	}
}
