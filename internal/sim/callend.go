// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// ended takes in how an attempt has ended, and does what follows.
func (c *call) ended(a *attempt, ans *answer) {
	a.over = true
	i := slices.Index(c.running, a)
	c.running = slices.Delete(c.running, i, i+1)
	if ans.code() == codes.OK {
		timeout := c.link.policy.PerAttemptTimeout()
		c.settle(a, timeout == 0 || c.link.world.now-a.began <= timeout)
		c.best, c.verdict = ans, policy.ReasonSucceeded
		c.stop()
	} else {
		c.failed(a, ans)
	}
	if c.over {
		c.finish()
	}
}

// failed decides what follows an attempt that has failed.
func (c *call) failed(a *attempt, ans *answer) {
	c.settle(a, false)
	d := c.decideFailed(a, ans)
	if c.stopped && d.Reason == policy.ReasonAttemptsExhausted {
		d.Reason = policy.ReasonPushbackStop
	}
	c.best, c.verdict = ans, d.Reason
	switch {
	case d.Retry && d.Delay == 0 && len(c.running) == 0:
		c.next = d
		c.launch()
	case d.Retry:
		c.await(d)
	case d.Reason == policy.ReasonNonRetryable, len(c.running) == 0:
		c.stop()
	case d.Reason == policy.ReasonPushbackStop:
		c.stopped, c.state.MaxAttempts = true, c.state.Attempts
	}
}

// decideFailed asks the policy. A slow attempt that others have followed, by a retry policy, needs no other
// when it fails; else what was decided about a slow one does not hold any more.
func (c *call) decideFailed(a *attempt, ans *answer) policy.Decision {
	newer := len(c.running) > 0 && c.running[len(c.running)-1].number > a.number
	if c.state.Followed = newer && c.link.policy.Hedge() == nil; !c.state.Followed {
		c.giveBack()
		c.waiting = false
	}
	d := c.decide(&policy.Outcome{Status: ans.status, Trailer: ans.trailer, Final: ans == cancelled})
	c.state.Followed = false
	return d
}

// stop ends the call: nothing is sent any more, and what runs is abandoned.
func (c *call) stop() {
	c.over = true
	c.waiting = false
	c.giveBack()
	for _, a := range c.running {
		if a.slow && c.link.policy.Hedge() == nil {
			c.Fail() // it was too slow for another to wait for it
		}
		c.settle(a, false)
		a.abandon()
	}
	c.running = nil
}

// expire ends a call whose time is up: all of its attempts fail with that.
func (c *call) expire() { c.quit(late) }

// cancel ends a call that nobody waits for any more.
func (c *call) cancel() {
	if !c.over {
		c.quit(cancelled)
	}
}

func (c *call) quit(why *answer) {
	if len(c.running) == 0 { // it waits for its next attempt
		c.best, c.verdict = why, policy.ReasonCancelled
		c.stop()
		c.finish()
		return
	}
	for !c.over && len(c.running) > 0 {
		a := c.running[0]
		a.abandon()
		c.ended(a, why)
	}
}

// finish tells everybody of the end.
func (c *call) finish() {
	w := c.link.world
	if c.let != "" && c.best == late {
		c.verdict = c.let // what let a slow attempt run into the deadline
	}
	switch {
	case c.best.code() != codes.OK:
		c.budget.Finish(w.now, budget.EndFailed)
	case c.state.Attempts == 1:
		c.budget.Finish(c.start, budget.EndAtOnce)
	default:
		c.budget.Finish(w.now, budget.EndSucceeded)
	}
	c.link.ended(c)
	if c.parent == nil {
		return
	}
	if gaveUp(c) {
		c.parent.gaveUp = true
	}
	if !c.parent.over {
		c.parent.returned(c.best)
	}
}

// gaveUp reports whether a call has ended after its retries, so that who called here need not try again.
// It is what the interceptor tells upstream; a test holds the two together.
func gaveUp(c *call) bool {
	switch c.verdict {
	case policy.ReasonAttemptsExhausted:
		return c.state.Attempts > 1 // one that may not retry has not given up
	case policy.ReasonPushbackStop, policy.ReasonDeadlineTooClose, policy.ReasonTooManyWaiting, policy.ReasonBudgetExhausted:
		return true
	default:
		return false
	}
}
