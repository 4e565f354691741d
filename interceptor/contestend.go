// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// failed decides what follows an attempt that has failed, and has left. place is how it came out.
func (r *contest) failed(l *lane, err error, place Place) {
	r.observeAttempt(err, place)
	r.gates.settle(l.oldAttempt, err, false)
	out := r.outcome(err)
	d := r.decideFailed(l, &out)
	if r.stopped && d.Reason == policy.ReasonAttemptsExhausted {
		d.Reason = policy.ReasonPushbackStop
	}
	r.best, r.err, r.last, r.verdict = l, err, nil, d
	switch {
	case d.Retry:
		r.waiting, r.next, r.due = true, d, budget.Now()+d.Delay
		r.mine = len(r.running) == 0
		if !r.mine {
			r.alarm(d.Delay)
		}
	case d.Reason == policy.ReasonNonRetryable, d.Commit == policy.CommitUnsendable, len(r.running) == 0:
		r.stop()
	case d.Reason == policy.ReasonPushbackStop:
		r.stopped, r.state.MaxAttempts = true, r.state.Attempts
	}
}

// decideFailed asks the policy. A slow attempt that others have followed, by a retry policy, needs no other
// when it fails; else what was decided about a slow one does not hold any more.
func (r *contest) decideFailed(l *lane, out *policy.Outcome) policy.Decision {
	newer := len(r.running) > 0 && r.running[len(r.running)-1].number > l.number
	if r.state.Followed = newer && r.policy.Hedge() == nil; !r.state.Followed {
		r.gates.giveBack()
		r.waiting = false
	}
	d := r.decide(out)
	r.state.Followed = false
	return d
}

// lost notes the end of an attempt when another one has won, or the call has ended without.
func (r *contest) lost(l *lane, err error) {
	if err == nil || answered(err) {
		r.observeAttempt(err, l.place(PlaceLost))
		if err == nil {
			r.record(l)
		}
		r.gates.settle(l.oldAttempt, err, false)
		return
	}
	r.observeAttempt(err, PlaceCancelled)
	if l.slow { // of a younger one, how long it took so far says nothing
		r.record(l)
	}
	switch {
	case l.slow && r.policy.Hedge() == nil:
		r.gates.Fail()
		r.gates.settle(l.oldAttempt, timedOut.Err(), false)
	case r.err != nil && r.ctx.Err() != nil:
		r.gates.settle(l.oldAttempt, err, false) // it ran into the call's end
	default:
		r.gates.settle(l.oldAttempt, nil, false) // it was fast enough, as far as it got
	}
}

// record tells the method's latency of an attempt that was answered, or might have been.
func (r *contest) record(l *lane) {
	if r.latency != nil {
		now := budget.Now()
		r.latency.record(now-l.began, now)
	}
}

// stop ends the contest: nothing is sent any more, and what runs is cancelled.
func (r *contest) stop() {
	r.over = true
	if r.timer != nil && !r.timer.Stop() {
		r.fired = true
	}
	r.gates.giveBack()
	r.waiting = false
	for _, l := range r.running {
		l.cancel()
	}
}
