// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/attempts"
)

// unaryAttempt is one attempt of a unary call.
type unaryAttempt struct {
	attempt

	opts  []grpc.CallOption
	reply any  // nil until it is sent
	own   bool // the reply is not the caller's
	runs  bool // it was sent, and has not returned
	left  bool // gRPC may still use its options, or write to their targets, in another goroutine
}

// reset prepares the attempt for reuse, and reports whether that is possible.
func (a *unaryAttempt) reset() bool {
	if a.left || a.runs {
		return false
	}
	a.attemptOptions.reset()
	a.ctx, a.reply, a.own, a.took, a.done = nil, nil, false, 0, false
	return true
}

// noteLeft records whether a, which has returned with err, may still be in use: an inner interceptor may have returned without
// waiting for gRPC, and after the context's end, gRPC may be ending the attempt in another goroutine.
func (a *unaryAttempt) noteLeft(cc *grpc.ClientConn, err error) {
	switch {
	case a.ctx.Err() != nil:
		a.left = true
	case err != nil:
		a.left = !a.done || !answered(err) || closed(cc)
	default:
		a.left = cc != nil && !a.ended.Load()
	}
}

// spare returns an unused attempt for number n.
func (u *unary) spare(n int) *unaryAttempt {
	if n <= len(u.space) && u.space[n-1] != nil {
		return u.space[n-1]
	}
	a := new(unaryAttempt)
	a.init()
	if n <= len(u.space) {
		u.space[n-1] = a
	}
	return a
}

// try makes an attempt.
func (u *unary) try(a *unaryAttempt) error {
	a.runs = true
	switch {
	case a.own:
		a.reply = u.hedging.replies.newMessage()
	case a.number > 1:
		u.kept.restore()
		fallthrough
	default:
		a.reply = u.reply
	}
	err := u.invoke(a.ctx, u.method, u.req, a.reply, u.cc, a.opts...)
	a.runs = false
	return err
}

// mayStillRun reports whether attempt a, from which an inner interceptor has returned, may still write into the caller's
// reply: gRPC has not ended it, and we don't know whether it has begun. From then on, attempts of this Retrier have
// their own replies, if possible, so that they can be retried.
func (u *unary) mayStillRun(a *unaryAttempt) bool {
	if a.own || a.done || u.cc == nil {
		return false
	}
	u.retrier.leftRunning.Store(true)
	return true
}

// prepareAttempt prepares an attempt. u.mu must be held.
func (u *unary) prepareAttempt(n int, at time.Duration, here bool) *unaryAttempt {
	a := u.spare(n)
	if n > 1 {
		u.options.header = true // from now on, headers may have pushback
	}
	a.opts = u.assign(&a.attempt, n, at)
	a.cancel = func() {}
	if u.policy.Parallel() || u.policy.PerAttemptTimeout() > 0 {
		a.ctx, a.cancel = context.WithCancel(a.ctx)
	}
	a.own = !here || u.retrier.leftRunning.Load() && u.hedging.replies.makes()
	u.attempts = append(u.attempts, a)
	return a
}

// cut ends a call in which attempt a, or a callback of an event, panics, and cancels its other attempts. u.mu must be held.
func (u *unary) cut(a *unaryAttempt) {
	var step attempts.Step
	if a != nil && a.runs {
		step = u.endPanicked(a)
		a.cancel()
	} else {
		step = u.engine.Abort(u.now())
	}
	for _, n := range step.Cancel {
		if n <= len(u.attempts) { // else an option of it panicked before it was sent
			u.attempts[n-1].cancel()
		}
	}
	u.hedging.stopTimer()
}

// endPanicked reports an attempt that has panicked to the engine. If a callback then panics too, the call is over, and
// only the first panic continues.
func (u *unary) endPanicked(a *unaryAttempt) (step attempts.Step) {
	defer func() {
		if p := recover(); p != nil {
			step = u.engine.Abort(u.now())
		}
	}()
	return u.engine.Ended(a.number, attempts.Result{Panicked: true}, u.now())
}
