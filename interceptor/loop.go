// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// first begins the first attempt: its context, and the watch over its timeout if it has one.
func (c *call) first() (context.Context, *watch) {
	c.state.Attempts = 1
	ctx := firstAttempt(c.ctx)
	if c.policy.PerAttemptTimeout() == 0 {
		return ctx, nil
	}
	return c.watched(ctx, c.start)
}

// later begins another attempt.
func (c *call) later() (context.Context, *watch) {
	c.attempt.reset()
	c.wantHeader()
	c.began = c.retrier.now()
	return c.watched(laterAttempt(c.ctx, c.state.Attempts-1), c.began)
}

// follow does what an attempt that failed with err asks for. It returns nil when the next attempt
// is to be sent now, else the error for the caller.
func (c *call) follow(err error, w *watch) error {
	now := c.retrier.now()
	abandoned := w.abandoned() && cancelled(err)
	c.observeAttempt(now, err, abandoned)
	if abandoned {
		// The next attempt was decided on when the timeout fired, and its wait is over.
		c.account.Fail(now)
		return c.next(w.decision, err)
	}
	c.account.giveBack(now) // what was decided about a slow attempt does not hold for a failed one
	out := c.outcome(err)
	d := c.decide(&out, now)
	if !d.Retry {
		return c.fail(err, nil, w.reason(c.ctx, d.Reason))
	}
	c.wait(d.Delay)
	return c.next(d, err)
}

// next moves on to the attempt that d allowed, or returns the error for the caller if the call has
// ended meanwhile; last is the error of the attempt before.
func (c *call) next(d policy.Decision, last error) error {
	switch err := c.ctx.Err(); {
	case err != nil:
		st := status.FromContextError(err)
		st = status.Newf(st.Code(), "%s before attempt %d; the attempt before: %v", st.Message(), c.state.Attempts+1, last)
		return c.fail(st.Err(), last, policy.Cancelled)
	case closed(c.cc):
		return c.fail(last, nil, policy.Closed)
	}
	c.state.Sent(d)
	c.account.sent()
	return nil
}

// decide asks the policy, and tells the observers.
func (c *call) decide(out *policy.Outcome, now time.Time) policy.Decision {
	c.state.Deadline, _ = c.ctx.Deadline()
	c.state.Safe = c.safe || c.policy.Safe(c.method)
	d := c.policy.Decide(&c.state, out, &c.account, now, c.retrier.random())
	for _, o := range c.retrier.observers {
		if o.Decision != nil {
			o.Decision(c.ctx, DecisionEvent{
				Method: c.method, Target: c.target(), Attempt: c.state.Attempts,
				Code: out.Status.Code(), TimedOut: out.TimedOut, Decision: d,
			})
		}
	}
	return d
}

// succeed ends a call that was answered with OK.
func (c *call) succeed() {
	first := c.state.Attempts == 1 && !c.account.next.held
	now := c.start // good enough for a call that nobody asks about
	if !first || len(c.retrier.observers) > 0 {
		now = c.retrier.now()
		c.observeAttempt(now, nil, false)
		c.observeCall(now, nil, policy.Succeeded)
	}
	c.account.finish(now, true)
	c.deliver(nil)
	if first {
		c.release()
	}
}

// fail ends a call with an error; last is that of the attempt before, where it is another one. The
// call's memory is not used again: an attempt may have left something behind that writes to it.
func (c *call) fail(err, last error, reason policy.Reason) error {
	now := c.retrier.now()
	final := &Error{
		Attempts: c.state.Attempts, Elapsed: now.Sub(c.start), Reason: reason,
		err: err, last: last,
	}
	c.account.finish(now, false)
	c.observeCall(now, final, reason)
	c.deliver(final)
	return final
}

func (c *call) observeAttempt(now time.Time, err error, abandoned bool) {
	began := c.start
	if c.state.Attempts > 1 {
		began = c.began
	}
	for _, o := range c.retrier.observers {
		if o.Attempt != nil {
			o.Attempt(c.ctx, AttemptEvent{
				Method: c.method, Target: c.target(), Number: c.state.Attempts,
				Start: began, Elapsed: now.Sub(began), Code: status.Code(err), Err: err,
				Peer: c.attempt.peer.Addr, Abandoned: abandoned,
			})
		}
	}
}

func (c *call) observeCall(now time.Time, err error, reason policy.Reason) {
	for _, o := range c.retrier.observers {
		if o.Call != nil {
			o.Call(c.ctx, CallEvent{
				Method: c.method, Target: c.target(), Attempts: c.state.Attempts,
				Start: c.start, Elapsed: now.Sub(c.start), Waited: c.waited,
				Code: status.Code(err), Err: err, Reason: reason,
			})
		}
	}
}

// cancelled reports whether err is what gRPC makes of a context that was cancelled, and so no
// answer of its own.
func cancelled(err error) bool {
	code := status.Code(err)
	return code == codes.Canceled || code == codes.DeadlineExceeded
}
