// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// later begins an attempt after the first: its context, and the watch over its timeout if it has one.
//
// Later attempts always bring their headers, for a retry-after in them. A first one does so only if
// caller or policy ask: gRPC copies what it hands over, and in a call that succeeds at once only the
// trailer may cost anything (law 10).
func (c *call) later() (context.Context, *watch) {
	c.reset()
	if c.wishes&headers == 0 {
		c.wishes |= headers
		c.opts = append(c.opts, grpc.Header(&c.header))
	}
	c.began = budget.Now()
	return c.watched(laterAttempt(c.ctx, c.state.Attempts-1))
}

// follow does what an attempt that failed with err asks for. It returns nil when the next attempt
// is to be sent now, else the error for the caller.
func (c *call) follow(err error, w *watch) error {
	abandoned := w.abandoned() && cancelled(err)
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
	c.account.budget.Finish(budget.Now(), true)
	c.observeCall(nil, policy.Succeeded)
	c.deliver(c.caller, nil)
}

// late reports whether the running attempt took longer than an attempt should. Such an answer comes
// from a service in trouble, and is no sign that extra attempts help: in an overload, they would pay
// for the next ones and deepen it.
func (c *call) late() bool {
	timeout := c.policy.PerAttemptTimeout()
	return timeout > 0 && budget.Now()-c.began > timeout
}

// fail ends a call with an error; last is that of the attempt before, where it is another one.
func (c *call) fail(err, last error, reason policy.Reason) error {
	now := budget.Now()
	final := &Error{Attempts: c.state.Attempts, Elapsed: now - c.start, Reason: reason, err: err, last: last}
	c.account.giveBack()
	c.account.budget.Finish(now, false)
	c.observeCall(final, reason)
	c.deliver(c.caller, final)
	return final
}

// cancelled reports whether err is what gRPC makes of a context that was cancelled, and so no
// answer of its own.
func cancelled(err error) bool {
	code := status.Code(err)
	return code == codes.Canceled || code == codes.DeadlineExceeded
}
