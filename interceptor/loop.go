// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// follow does what an attempt that failed with err asks for. It returns nil when the next attempt
// is to be sent now, else the error for the caller.
func (c *call) follow(err error, w *watch) error {
	abandoned := w.abandoned() && !answered(err)
	c.observeAttempt(err, abandoned)
	if abandoned {
		// The next attempt was decided on when the timeout fired, and its wait is over.
		c.account.Fail()
		return c.next(w.decision, err)
	}
	c.account.giveBack() // what was decided about a slow attempt does not hold for a failed one
	out := c.outcome(err)
	d := c.decide(&out)
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
func (c *call) decide(out *policy.Outcome) policy.Decision {
	c.state.Deadline, _ = c.ctx.Deadline()
	c.state.Safe = c.wishes&safe != 0 || c.policy.Safe(c.method)
	if c.policy.Index() < 0 && c.policy.MaxAttempts() > c.retrier.maxAttempts {
		c.retrier.warnCut(c.policy.MaxAttempts())
	}
	d := c.policy.Decide(&c.state, out, &c.account, time.Now(), c.retrier.random())
	c.observeDecision(out, d)
	return d
}

// succeed ends a call that was answered with OK.
func (c *call) succeed() {
	c.observeAttempt(nil, false)
	c.account.giveBack()
	if !c.late() {
		c.account.succeed()
	}
	c.finish(nil, policy.Succeeded)
}

// late reports whether the running attempt took longer than an attempt should. Such an answer comes
// from a service in trouble, and is no sign that extra attempts help: in an overload, they would pay
// for the next ones and deepen it.
func (c *call) late() bool {
	timeout := c.policy.PerAttemptTimeout()
	return timeout > 0 && cmp.Or(c.answered, budget.Now())-c.began > timeout
}

// fail ends a call with an error; last is that of the attempt before, where it is another one.
func (c *call) fail(err, last error, reason policy.Reason) error {
	final := &Error{Attempts: c.state.Attempts, Elapsed: budget.Now() - c.start, Reason: reason, err: err, last: last}
	c.account.giveBack()
	c.finish(final, reason)
	return final
}

// finish tells everybody of the end.
func (c *call) finish(err error, reason policy.Reason) {
	c.over = true
	c.account.budget.Finish(budget.Now(), err == nil)
	if c.retrier.tellsCalls {
		c.retrier.tellCall(c.ctx, callEvent(c.method, c.cc, c.state.Attempts, c.start, c.waited, err, reason))
	}
	c.deliver(c.caller, err)
}

// answered reports whether err is an answer, and not what becomes of a context that was cancelled:
// gRPC makes a status of that, and an interceptor further in may return it as it is.
func answered(err error) bool {
	st, ok := status.FromError(err)
	return ok && st.Code() != codes.Canceled && st.Code() != codes.DeadlineExceeded
}
