// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// follow does what an attempt that failed with err asks for. Either the next attempt is to be sent
// now, or the call is over, with final for the caller.
func (c *oldCall) follow(err error, w *watch) (over bool, final error) {
	abandoned := w.abandoned() && !answered(err)
	place := PlaceAlone
	if abandoned {
		place = PlaceAbandoned
	}
	c.observeAttempt(err, place)
	if abandoned {
		// The next attempt was decided on when the timeout fired, and its wait is over.
		c.gates.Fail()
		c.gates.settle(c.oldAttempt, timedOut.Err(), false)
		return c.next(w.decision, err)
	}
	c.gates.settle(c.oldAttempt, err, false)
	c.gates.giveBack() // what was decided about a slow attempt does not hold for a failed one
	out := c.outcome(err)
	d := c.decide(&out)
	if !d.Retry {
		d.Reason = w.reason(c.ctx, d.Reason)
		return true, c.end(err, nil, d)
	}
	c.wait(d.Delay)
	return c.next(d, err)
}

// next moves on to the attempt that d allowed, unless the call has ended meanwhile; last is the error
// of the attempt before.
func (c *oldCall) next(d policy.Decision, last error) (over bool, final error) {
	switch reason := c.ready(); reason {
	case policy.ReasonRetry:
		c.state.Sent(d)
		return false, nil
	case policy.ReasonCancelled:
		return true, c.end(c.gone(last), last, policy.Decision{Reason: reason})
	default:
		return true, c.end(last, nil, policy.Decision{Reason: reason})
	}
}

// ready reports whether an attempt that was decided on, maybe long ago, may be sent now: policy.ReasonRetry, or
// why not.
func (c *oldCall) ready() policy.Reason {
	switch {
	case c.ctx.Err() != nil:
		return policy.ReasonCancelled
	case closed(c.cc):
		return policy.ReasonClosed
	case c.gates.admit() != nil:
		return policy.ReasonBreakerOpen
	default:
		return policy.ReasonRetry
	}
}

// gone is the error of a call whose context has ended while it waited for its next attempt; last is that
// of the attempt before, nil if the classifier has said "not yet" of its reply.
func (c *oldCall) gone(last error) error {
	st, before := status.FromContextError(c.ctx.Err()), "was answered, but not yet"
	if last != nil {
		before = last.Error()
	}
	return status.Errorf(st.Code(), "%s before attempt %d; the attempt before: %s", st.Message(), c.state.Attempts+1, before)
}

// decide asks the policy, and tells the observers.
func (c *oldCall) decide(out *policy.Outcome) policy.Decision {
	c.state.Deadline, _ = c.ctx.Deadline()
	c.state.Safe = c.flags&safe != 0 || c.key != "" || c.retrier.rules.Load().set.Safe(c.policy, c.method)
	c.state.InRetry = inRetry(c.ctx)
	if c.policy.Index() < 0 && c.policy.MaxAttempts() > c.retrier.maxAttempts {
		c.retrier.warnCut(c.policy.MaxAttempts())
	}
	d := c.policy.Decide(&c.state, out, &c.gates, time.Now(), c.retrier.random())
	c.observeDecision(out, d)
	return d
}

// succeed ends a call that was answered with OK, by an attempt with the given place.
func (c *oldCall) succeed(place Place) {
	c.observeAttempt(nil, place)
	c.gates.settle(c.oldAttempt, nil, !c.late())
	c.finish(nil, policy.ReasonSucceeded)
}

// late reports whether the running attempt took longer than an attempt should. Such an answer comes
// from a service in trouble, and is no sign that extra attempts help: in an overload, they would pay
// for the next ones and deepen it.
func (c *oldCall) late() bool {
	timeout := c.policy.PerAttemptTimeout()
	return timeout > 0 && cmp.Or(c.answered, budget.Now())-c.began > timeout
}

// end ends a call that no other attempt follows, for the reason of d. Without an error, the classifier
// has said "not yet" of the last reply, which the caller now gets. last is the error of the attempt
// before, where that is another one.
func (c *oldCall) end(err, last error, d policy.Decision) error {
	if err == nil {
		c.finish(nil, d.Reason)
		return nil
	}
	final := &Error{
		Attempts: c.state.Attempts, Elapsed: budget.Now() - c.start, Reason: d.Reason, Commit: d.Commit,
		err: err, last: last,
	}
	if c.state.Attempts != 1 || d.Reason != policy.ReasonAttemptsExhausted { // one that may not retry has not given up
		noteGaveUp(c.ctx, d.Reason)
	}
	c.finish(final, d.Reason)
	return final
}

// finish tells everybody of the end.
func (c *oldCall) finish(err error, reason policy.Reason) {
	c.over = true
	c.gates.giveBack()
	switch {
	case err == nil && c.state.Attempts == 1:
		c.gates.budget.Finish(c.start, budget.EndAtOnce)
	case err == nil:
		c.gates.budget.Finish(budget.Now(), budget.EndSucceeded)
	default:
		c.gates.budget.Finish(budget.Now(), budget.EndFailed)
	}
	if c.retrier.tellsCalls {
		c.retrier.notifyCall(c.ctx, c.callEvent(err, reason))
	}
	c.options.deliver(&c.attemptOptions, err)
}
