// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"slices"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// ended takes in how an attempt has ended, and decides what follows. It reports whether that is nothing,
// and no attempt runs any more.
func (r *race) ended(l *lane, err error) (last bool) {
	l.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wake()
	defer func() { r.gates.settle(l.attempt, errLeft, false) }() // if an observer or the classifier panics
	i := slices.Index(r.running, l)
	r.running = slices.Delete(r.running, i, i+1)
	failed := r.panics != nil || r.over || r.judge(l.reply, err, nil)
	if failed {
		l.attempt = l.settled()
	}
	r.attempt = l.attempt
	switch {
	case r.panics != nil:
		r.gates.settle(l.attempt, errLeft, false)
		r.stop()
	case r.over:
		r.lost(l, err)
	case !failed:
		r.won(l)
	default:
		r.failed(l, err)
	}
	return r.over && len(r.running) == 0
}

// won takes the answer of an attempt for the call's. It requires mu.
func (r *race) won(l *lane) {
	r.observeAttempt(nil, l.place(Won))
	r.gates.settle(l.attempt, nil, !r.late())
	r.record(l)
	r.best, r.err, r.last, r.verdict = l, nil, nil, policy.Decision{Reason: policy.Succeeded}
	r.stop()
	r.clean = r.state.Attempts == 1 && !r.fired
}

// failed decides what follows an attempt that has failed. It requires mu.
func (r *race) failed(l *lane, err error) {
	r.observeAttempt(err, l.place(Lost))
	r.gates.settle(l.attempt, err, false)
	out := r.outcome(err)
	d := r.decideFailed(l, &out)
	if r.stopped && d.Reason == policy.AttemptsExhausted {
		d.Reason = policy.PushbackStop
	}
	r.best, r.err, r.last, r.verdict = l, err, nil, d
	switch {
	case d.Retry:
		r.waiting, r.next, r.due = true, d, budget.Now()+d.Delay
		r.mine = len(r.running) == 0 // the caller's goroutine has nothing else to do
		if !r.mine {
			r.alarm(d.Delay)
		}
	case d.Reason == policy.NonRetryable, len(r.running) == 0:
		r.stop()
	case d.Reason == policy.PushbackStop:
		r.stopped, r.state.MaxAttempts = true, r.state.Attempts
	}
}

// decideFailed asks the policy. A slow attempt that others have followed, by a retry policy, needs no other
// when it fails; else what was decided about a slow one does not hold any more. It requires mu.
func (r *race) decideFailed(l *lane, out *policy.Outcome) policy.Decision {
	newer := len(r.running) > 0 && r.running[len(r.running)-1].number > l.number
	if r.state.Followed = newer && r.policy.Hedge() == nil; !r.state.Followed {
		r.gates.giveBack()
		r.waiting = false
	}
	d := r.decide(out)
	r.state.Followed = false
	return d
}

// lost notes the end of an attempt when another one has won, or the call has ended without. It requires
// mu.
func (r *race) lost(l *lane, err error) {
	if err == nil || answered(err) {
		r.observeAttempt(err, l.place(Lost))
		if err == nil {
			r.record(l)
		}
		r.gates.settle(l.attempt, err, false)
		return
	}
	r.observeAttempt(err, Stopped)
	if l.slow { // of a younger one, how long it took so far says nothing
		r.record(l)
	}
	switch {
	case l.slow && r.policy.Hedge() == nil:
		r.gates.Fail()
		r.gates.settle(l.attempt, timedOut.Err(), false)
	case r.err != nil && r.ctx.Err() != nil:
		r.gates.settle(l.attempt, err, false) // it ran into the call's end
	default:
		r.gates.settle(l.attempt, nil, false) // it was fast enough, as far as it got
	}
}

// record tells the method's latency of an attempt that was answered, or might have been.
func (r *race) record(l *lane) {
	if r.latency != nil {
		now := budget.Now()
		r.latency.record(now-l.began, now)
	}
}

// stop ends the race: nothing is sent any more, and what runs is cancelled. It requires mu.
func (r *race) stop() {
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

// wake tells the caller's goroutine that something has changed. It requires mu.
func (r *race) wake() {
	select {
	case r.changed <- struct{}{}:
	default: // it has been told, or nobody waits: the channel is nil
	}
}

// place is how the attempt came out, if others ran beside it.
func (l *lane) place(p Place) Place {
	if !l.beside {
		return Alone
	}
	return p
}
