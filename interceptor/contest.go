// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// contest is what the attempts of a call have in common that may run beside each other, unary or stream:
// which ones run, when the next is sent, what follows one that has failed, and whose answer is the call's.
// It is guarded by the lock of the call, which every method requires.
type contest struct {
	*oldCall // its attempt is the one that is being looked at

	latency *latency // of the method; nil if the delay does not follow it
	fires   func()   // what the timer runs

	timer   *time.Timer     // fires when the newest attempt is slow, or the wait before the next is over; may be nil
	running []*lane         // in the order in which they were sent
	waiting bool            // the next attempt is decided on, and waits to be sent
	mine    bool            // who has found that none runs any more waits for that, and not the timer
	next    policy.Decision // about it
	due     time.Duration   // when it is to be sent
	slowAt  time.Duration   // when the newest attempt is slow
	over    bool            // nothing is sent any more
	fired   bool            // the timer's goroutine may have seen the contest
	best    *lane           // its answer is the call's
	err     error           // that answer
	last    error           // of the attempt before, where err is another one
	verdict policy.Decision // why no other attempt follows
	stopped bool            // the server has forbidden further attempts
	let     policy.Reason   // why a slow attempt was let go on alone
}

// lane is one attempt of a contest.
type lane struct {
	*oldAttempt

	cancel context.CancelFunc
	try    *try // nil for unary calls
	beside bool // another one has run beside it
	slow   bool // it has used up its per-attempt timeout
}

// place is how the attempt came out, if others ran beside it.
func (l *lane) place(p Place) Place {
	if !l.beside {
		return PlaceAlone
	}
	return p
}

// enter adds an attempt that is being sent.
func (r *contest) enter(l *lane) {
	for _, other := range r.running {
		other.beside, l.beside = true, true
	}
	r.running = append(r.running, l)
	r.arm()
}

// leave takes out an attempt that has ended. It reports false if it has left before.
func (r *contest) leave(l *lane) bool {
	i := slices.Index(r.running, l)
	if i >= 0 {
		r.running = slices.Delete(r.running, i, i+1)
	}
	return i >= 0
}

// learn finds the latency of the method, if the delay follows that.
func (r *contest) learn() {
	if h := r.policy.Hedge(); h != nil && h.Quantile != nil {
		r.latency = r.retrier.latencies.find(h.Quantile.Quantile, target(r.cc), r.method)
	}
}

// arm sets the timer for when the newest attempt is slow, if that could lead to anything.
func (r *contest) arm() {
	r.slowAt = math.MaxInt64 // a timer that was set before means another attempt
	if r.stopped || r.state.Attempts >= min(r.policy.MaxAttempts(), r.state.MaxAttempts) {
		return
	}
	after := r.patience()
	if deadline, ok := r.ctx.Deadline(); ok && time.Until(deadline) <= after {
		return
	}
	r.slowAt = r.running[len(r.running)-1].began + after
	r.alarm(after)
}

// patience is the time after which an attempt is slow.
func (r *contest) patience() time.Duration {
	if h := r.policy.Hedge(); h != nil {
		return r.latency.after(h)
	}
	return r.policy.PerAttemptTimeout()
}

// alarm sets the timer.
func (r *contest) alarm(after time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(after, r.fires)
		return
	}
	r.timer.Reset(after)
}

// rings reports, when the timer has fired, whether the next attempt is to be sent now.
func (r *contest) rings() bool {
	r.fired = true
	switch {
	case r.over || r.mine:
		return false
	case r.waiting:
		return r.due <= budget.Now() // else the timer was set anew while its function came up
	default:
		return len(r.running) > 0 && !r.stopped && r.slow()
	}
}

// slow decides what follows the newest attempt, which is slow.
func (r *contest) slow() bool {
	newest := r.running[len(r.running)-1]
	if newest.number < r.state.Attempts || budget.Now() < r.slowAt {
		return false // it has failed, and the others go on; or the timer was set anew
	}
	newest.slow = true
	r.oldAttempt = newest.oldAttempt
	out := policy.Outcome{Status: timedOut, TimedOut: true}
	d := r.decide(&out)
	if !d.Retry {
		r.let = d.Reason
		return false
	}
	r.waiting, r.next, r.due = true, d, budget.Now()+d.Delay
	if d.Delay > 0 {
		r.alarm(d.Delay)
	}
	return d.Delay <= 0
}

// allowed reports whether the attempt that was decided on may still be sent, and counts it. If it may not,
// and no other one runs, the contest is over.
func (r *contest) allowed() bool {
	r.waiting, r.mine = false, false
	reason := r.ready()
	if reason == policy.ReasonRetry {
		r.state.Sent(r.next)
		return true
	}
	r.gates.giveBack()
	r.let = cmp.Or(r.let, reason)
	if len(r.running) > 0 {
		return false
	}
	r.stop()
	r.verdict = policy.Decision{Reason: reason}
	if reason == policy.ReasonCancelled {
		r.last, r.err = r.err, r.gone(r.err)
	}
	return false
}

// fail ends the call with the error of its best attempt. Nothing runs any more.
func (r *contest) fail() error {
	if r.let != "" && errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
		r.verdict.Reason = r.let // what let a slow attempt run into the deadline
	}
	return r.end(r.err, r.last, r.verdict)
}
