// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

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

// reset prepares the attempt for reuse, and reports whether that is possible. gRPC doesn't write targets when
// it has nothing to report, so reset clears them. It keeps the options until others replace
// them: an inner interceptor that still reads them, though it should not, must not find nil.
func (a *unaryAttempt) reset() bool {
	if a.left || a.runs {
		return false
	}
	a.ctx, a.cancel, a.reply, a.own, a.took, a.done = nil, nil, nil, false, 0, false
	a.header, a.trailer, a.retrier = nil, nil, nil // the next attempt may belong to another Retrier's call
	if a.peer.Addr != (nowhere{}) {
		a.peer = peer.Peer{Addr: nowhere{}}
	}
	if a.ended.Load() {
		a.ended.Store(false)
	}
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
	if n > len(u.space) {
		return newUnaryAttempt()
	}
	if u.space[n-1] == nil {
		u.space[n-1] = newUnaryAttempt()
	}
	return u.space[n-1]
}

// stop ends the attempt's context, if it has one of its own.
func (a *unaryAttempt) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}

func newUnaryAttempt() *unaryAttempt {
	a := new(unaryAttempt)
	a.init()
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
	a := u.space[0]
	if n > 1 {
		a = u.spare(n)
		u.options.header = true // from now on, headers may have pushback
	}
	a.opts = u.assign(&a.attempt, n, at)
	if a.cancel = nil; u.entry.timed {
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
		a.stop()
	} else {
		step = u.engine.Abort(u.now())
	}
	for _, n := range step.Cancel {
		if n <= len(u.attempts) { // else an option of it panicked before it was sent
			u.attempts[n-1].stop()
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
