// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
)

// race is a unary call whose attempts may run beside each other: hedges, and those that follow a slow
// attempt (onAttemptTimeout HEDGE). The first good answer wins; the other attempts are cancelled, and
// have ended before the call returns.
//
// The first attempt runs in the caller's goroutine and decodes into the caller's reply, and so does one
// that is sent when no other runs. One that is sent beside others runs in the timer's goroutine, with a
// reply of its own. A call that is answered before the timer fires starts no goroutine.
type race struct {
	contest

	own        oldCall
	req, reply any // the caller's
	invoke     grpc.UnaryInvoker
	kind       kind // of reply
	first      runner

	mu      sync.Mutex    // guards all below, and the contest
	changed chan struct{} // wakes the caller's goroutine; holds one; nil until an attempt runs beside it
	here    *runner       // runs in the caller's goroutine, or was the last to do so
	answer  any           // of the best attempt, if it is not in the caller's reply
	panics  any           // what an attempt outside of the caller's goroutine has panicked with
	clean   bool          // nobody else has seen the race, and its only attempt has succeeded
}

// runner is an attempt of a race.
type runner struct {
	lane

	ctx   context.Context //nolint:containedctx // of this attempt alone
	reply any
	opts  []grpc.CallOption
}

// races that have ended without a second attempt are used again. Timers and channels are not: those of
// one synctest bubble must not be used in another.
var races = sync.Pool{New: func() any {
	r := new(race)
	r.oldCall, r.fires = &r.own, r.fire
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
	r.learn()
	l := &r.first
	l.oldAttempt, l.reply, l.opts = r.oldAttempt, reply, opts
	l.ctx, l.cancel = context.WithCancel(firstAttempt(r.ctx))
	r.here = l
	r.enter(&l.lane)
	r.mu.Unlock()
	defer r.tidy()
	for l != nil {
		err := invoke(l.ctx, r.method, req, l.reply, r.cc, l.opts...)
		if r.ended(l, err) {
			break
		}
		l = r.await()
	}
	return r.finish()
}

// await returns the attempt that the caller's goroutine is to make now, or nil when the race is over and
// every attempt has ended. While others run, it waits for them.
func (r *race) await() *runner {
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
	r.oldAttempt = r.best.oldAttempt
	if r.err != nil {
		return r.fail()
	}
	if r.answer != nil {
		copyReply(r.reply, r.answer)
	}
	r.oldCall.finish(nil, r.verdict.Reason)
	return nil
}

// recycle lets another call use the race.
func (r *race) recycle() {
	r.release()
	*r = race{contest: contest{fires: r.fires, running: r.running[:0]}}
	r.oldCall = &r.own
	races.Put(r)
}

// tidy lets go of what a race holds, if a panic has cut it short: once every attempt has ended.
func (r *race) tidy() {
	if r.own.over {
		if r.clean {
			r.recycle()
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	if r.here != nil && r.leave(&r.here.lane) { // it is the caller's goroutine that panics
		r.gates.settle(r.here.oldAttempt, errLeft, false)
	}
	for len(r.running) > 0 {
		r.mu.Unlock()
		<-r.changed
		r.mu.Lock()
	}
	r.gates.budget.Finish(budget.Now(), budget.EndFailed)
}
