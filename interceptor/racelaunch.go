// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// arm sets the timer for when the newest attempt is slow, if that could lead to anything. It requires
// mu.
func (r *race) arm() {
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
func (r *race) patience() time.Duration {
	if h := r.policy.Hedge(); h != nil {
		return r.latency.after(h)
	}
	return r.policy.PerAttemptTimeout()
}

// alarm sets the timer. It requires mu.
func (r *race) alarm(after time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(after, r.fires)
		return
	}
	r.timer.Reset(after)
}

// fire runs in the timer's goroutine, and makes the attempt that is due there.
func (r *race) fire() {
	r.mu.Lock()
	r.fired = true
	var l *lane
	switch {
	case r.over || r.mine:
	case r.waiting:
		if r.due <= budget.Now() { // else the timer was set anew while this function came up
			l = r.launch(false)
		}
	case len(r.running) > 0 && !r.stopped:
		l = r.slow()
	}
	r.mu.Unlock()
	if l == nil {
		return
	}
	err := r.beside(l)
	r.ended(l, err)
}

// slow decides what follows the newest attempt, which is slow. It requires mu.
func (r *race) slow() *lane {
	newest := r.running[len(r.running)-1]
	if newest.number < r.state.Attempts || budget.Now() < r.slowAt {
		return nil // it has failed, and the others go on; or the timer was set anew
	}
	newest.slow = true
	r.attempt = newest.attempt
	out := policy.Outcome{Status: timedOut, TimedOut: true}
	d := r.decide(&out)
	if !d.Retry {
		r.let = d.Reason
		return nil
	}
	return r.schedule(d)
}

// schedule has the next attempt sent when its wait is over: by the timer if others run, else by the
// caller's goroutine. If the wait is over at once, it returns the attempt for this goroutine, the timer's.
// It requires mu.
func (r *race) schedule(d policy.Decision) *lane {
	r.waiting, r.next, r.due = true, d, budget.Now()+d.Delay
	if d.Delay > 0 {
		r.alarm(d.Delay)
		return nil
	}
	return r.launch(false)
}

// launch sends the attempt that was decided on, here in the caller's goroutine and with its reply, or
// beside it with one of its own. It returns nil if the call may not send it now. It requires mu.
func (r *race) launch(here bool) *lane {
	r.waiting = false
	reply := r.reply
	if !here {
		if reply = r.kind.fresh(); reply == nil {
			r.gates.giveBack() // nobody could decode into the caller's, either: gRPC will say so
			return nil
		}
	}
	if reason := r.ready(); reason != policy.Retry {
		r.gates.giveBack()
		r.let = cmp.Or(r.let, reason)
		if len(r.running) == 0 {
			r.refused(reason)
		}
		return nil
	}
	r.state.Sent(r.next)
	l := &lane{attempt: r.another(), reply: reply, here: here}
	l.ctx, l.cancel = context.WithCancel(laterAttempt(r.ctx, l.number-1))
	l.opts = l.options(r.again())
	for _, other := range r.running {
		other.beside, l.beside = true, true
	}
	if here {
		clearReply(reply)
	} else if r.changed == nil {
		r.changed = make(chan struct{}, 1)
	}
	r.running = append(r.running, l)
	r.arm()
	return l
}

// refused ends a race that waited for its next attempt, with no other running. It requires mu.
func (r *race) refused(reason policy.Reason) {
	r.over, r.verdict = true, policy.Decision{Reason: reason}
	if reason == policy.Cancelled {
		r.last, r.err = r.err, r.gone(r.err)
	}
}

// beside makes an attempt outside of the caller's goroutine. If an interceptor further in panics, it does
// so in the caller's goroutine, as it would have without hedging.
func (r *race) beside(l *lane) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errLeft
			r.mu.Lock()
			r.panics = p
			r.mu.Unlock()
		}
	}()
	return r.invoke(l.ctx, r.method, r.req, l.reply, r.cc, l.opts...)
}
