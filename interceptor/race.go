// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// race is a unary call whose attempts may run beside each other: hedges, and those that follow a slow
// attempt (onAttemptTimeout HEDGE). The first good answer wins; the other attempts are cancelled, and
// have ended before the call returns.
//
// The first attempt runs in the caller's goroutine and decodes into the caller's reply, and so does one
// that is sent when no other runs. One that is sent beside others runs in the timer's goroutine, with a
// reply of its own. A call that is answered before the timer fires starts no goroutine.
type race struct {
	call // its attempt is the one that is being looked at

	req, reply any // the caller's
	invoke     grpc.UnaryInvoker
	kind       kind // of reply
	first      lane
	latency    *latency // of the method; nil if the delay does not follow it
	fires      func()   // fire, made once

	mu      sync.Mutex      // guards all below, and the call
	timer   *time.Timer     // fires when the newest attempt is slow, or the wait before the next is over; may be nil
	changed chan struct{}   // wakes the caller's goroutine; holds one; nil until an attempt runs beside it
	running []*lane         // in the order in which they were sent
	waiting bool            // the next attempt is decided on, and waits to be sent
	mine    bool            // the caller's goroutine waits for that, and not the timer
	next    policy.Decision // about it
	due     time.Duration   // when it is to be sent
	slowAt  time.Duration   // when the newest attempt is slow
	over    bool            // nothing is sent any more
	fired   bool            // the timer's goroutine may have seen the race
	best    *lane           // its answer is the caller's
	err     error           // that answer
	last    error           // of the attempt before, where err is another one
	verdict policy.Decision // why no other attempt follows
	stopped bool            // the server has forbidden further attempts
	let     policy.Reason   // why a slow attempt was let go on alone
	panics  any             // what an attempt outside of the caller's goroutine has panicked with
	clean   bool            // nobody else has seen the race, and its only attempt has succeeded
}

// lane is one attempt of a race.
type lane struct {
	*attempt

	ctx    context.Context //nolint:containedctx // of this attempt alone
	cancel context.CancelFunc
	reply  any
	opts   []grpc.CallOption
	here   bool // it runs in the caller's goroutine, and decodes into the caller's reply
	beside bool // another one has run beside it
	slow   bool // it has used up its per-attempt timeout
}

// races that have ended without a second attempt are used again. Timers and channels are not: those of
// one synctest bubble must not be used in another.
var races = sync.Pool{New: func() any {
	r := new(race)
	r.fires = r.fire
	return r
}}

// run makes the attempts; opts are those of the first.
func (r *race) run(opts []grpc.CallOption, req, reply any, invoke grpc.UnaryInvoker) error {
	if timeout := r.policy.Spec().Timeout; timeout > 0 {
		ctx, cancel := context.WithTimeout(r.ctx, timeout)
		defer cancel()
		r.ctx = ctx
	}
	r.mu.Lock()
	r.req, r.reply, r.kind, r.invoke = req, reply, kindOf(reply), invoke
	if h := r.policy.Hedge(); h != nil && h.Quantile != nil {
		r.latency = r.retrier.latencies.find(h.Quantile.Quantile, target(r.cc), r.method)
	}
	l := &r.first
	l.attempt, l.reply, l.opts, l.here = r.attempt, reply, slices.Clip(opts), true
	l.ctx, l.cancel = context.WithCancel(firstAttempt(r.ctx))
	r.running = append(r.running, l)
	r.arm()
	r.mu.Unlock()
	defer r.leave()
	for l != nil {
		err := invoke(l.ctx, r.method, req, l.reply, r.cc, l.opts...)
		if r.ended(l, err) {
			break
		}
		l = r.follow()
	}
	return r.finish()
}

// follow returns the attempt that the caller's goroutine is to make now, or nil when the race is over and
// every attempt has ended. While others run, it waits for them.
func (r *race) follow() *lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case len(r.running) > 0:
			r.mu.Unlock()
			<-r.changed
			r.mu.Lock()
		case r.over || !r.waiting:
			return nil
		default:
			delay := r.due - budget.Now()
			r.mu.Unlock()
			r.wait(delay)
			r.mu.Lock()
			r.mine = false
			if l := r.launch(true); l != nil {
				return l
			}
		}
	}
}

// finish ends the call with the best answer. Nothing runs any more.
func (r *race) finish() error {
	if r.panics != nil {
		panic(r.panics) //nolint:forbidigo // it comes from an interceptor further in
	}
	r.attempt = r.best.attempt
	if r.err != nil {
		if r.let != "" && errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
			r.verdict.Reason = r.let // what let a slow attempt run into the deadline
		}
		return r.end(r.err, r.last, r.verdict)
	}
	if !r.best.here {
		copyReply(r.reply, r.best.reply)
	}
	r.call.finish(nil, r.verdict.Reason)
	return nil
}

// recycle lets another call use the race.
func (r *race) recycle() {
	r.release()
	*r = race{fires: r.fires, running: r.running[:0]}
	races.Put(r)
}

// leave lets go of what a race holds, if a panic has cut it short: once every attempt has ended.
func (r *race) leave() {
	if r.call.over {
		if r.clean {
			r.recycle()
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	for i, l := range r.running {
		if l.here { // it is the caller's goroutine that panics
			r.running = slices.Delete(r.running, i, i+1)
			r.gates.settle(l.attempt, errLeft, false)
			break
		}
	}
	for len(r.running) > 0 {
		r.mu.Unlock()
		<-r.changed
		r.mu.Lock()
	}
	r.gates.budget.Finish(budget.Now(), budget.Failed)
}
