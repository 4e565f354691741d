// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// beginStep starts the step of an event other than Start. It is the event's named result, and so isn't copied on the way.
func (c *Call) beginStep(step *Step) { step.Cancel, step.Wake = c.cancels[:0], Never }

// completeStep completes the step of an event. The call is over when no attempt runs or is to follow.
func (c *Call) completeStep(step *Step, now *Now) {
	c.cancels = step.Cancel[:0]
	switch {
	case c.state == over:
	case len(c.running) == 0 && c.pending.state == nothing:
		c.conclude(now)
		step.Over = true
	case c.state == open:
		step.Wake, step.Watch, step.Slow = c.nextWake()
	}
}

// conclude ends the call, and tells the budget.
func (c *Call) conclude(now *Now) {
	at := now.At
	c.endUnconnected()
	refusal := policy.Reason("") // the reason for which a slow attempt ran into the deadline
	if c.ending.reason == policy.ReasonDeadlineExceeded {
		refusal = c.ending.lastRefusal
	}
	if refusal != "" && !c.set.ByDefault { // a caller without a deadline has to know of the default
		c.ending.reason, refusal = refusal, ""
	}
	c.state = over
	c.end = End{
		Reason: c.ending.reason, Refusal: refusal, ResultOf: c.ending.result.attempt, Err: c.ending.result.err,
		Attempts: c.used.sent, Hedges: c.used.hedges,
		WouldRefuse: c.ledger.would, Slow: c.ending.slow, Answers: c.ending.answers,
	}
	if c.ending.reason == policy.ReasonCommitted {
		c.end.Commit = c.commit.why
	}
	c.gap.end(at)
	c.end.Waited, c.end.ForAnswer = c.gap.total, c.used.forAnswer
	c.end.Pushback = max(c.floor-at, 0)
	c.end.Forbidden = c.ending.forbidden
	c.end.FailsOK = c.ending.result.failsOK
	failed := c.end.Err != nil || c.end.ResultOf == 0
	if failed && c.ending.lastServerError.attempt != c.end.ResultOf {
		c.end.Last = c.ending.lastServerError.err
	}
	if !c.ending.reached {
		return
	}
	how := budget.EventCallSucceeded
	if failed || c.end.FailsOK {
		how = budget.EventCallFailed
	}
	c.set.Budget.Observe(clock.Time(at), how)
}

// endUnconnected ends a call at its deadline with not_connected and the error of its last connection, if it has made none. Otherwise chance
// would choose between two codes: whether the wait for a connection has ended by then, or an attempt was sent and waited in gRPC.
func (c *Call) endUnconnected() {
	last := c.ending.lastServerError
	answered := c.ending.result.attempt != 0 && !c.ending.result.contextEnded
	if c.ending.reason == policy.ReasonDeadlineExceeded && !c.ending.reached && last.unsent && !answered {
		c.ending.result, c.ending.reason = last, policy.ReasonNotConnected
	}
}
