// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"slices"

	"github.com/stagger-go/stagger/internal/attempts"
)

// Finish records that gRPC has called OnFinish for attempt n. The caller reports the end, if there is one.
func (c *Call) Finish(n int, err error) End {
	a := c.findAttempt(n)
	if a == nil || a.finished {
		return End{}
	}
	a.finished, a.record, c.acts.Moved = true, err, true
	return c.claimEnd(a, false)
}

// Overdue claims the end of attempt n, if no task has claimed it since Acts.Overdue. An inner interceptor may receive ahead,
// and the application may not call again.
func (c *Call) Overdue(n int) End {
	a := c.findAttempt(n)
	if a == nil || a.claimed || a.held() || a.record == nil && !a.headed { // without headers, RecvMsg has to find the error
		return End{}
	}
	return a.claim(End{Err: a.record})
}

// Gone reports the ends of all attempts that no task will report. It is for an inner interceptor that drops gRPC's call
// options, some time after the call's context has ended.
func (c *Call) Gone() {
	for _, a := range c.running {
		if !a.claimed && !a.held() {
			c.queueReport(a.claim(End{Err: a.record, GivenUp: a.record == nil}))
		}
	}
}

// Ended tells the engine how an attempt has ended. If rest is true, the resume request has replaced the kept messages. The
// driver uses only the place and the decision of the step.
func (c *Call) Ended(e End, r attempts.Result, rest bool) attempts.Step {
	a := c.findAttempt(e.Attempt)
	if a == nil || c.engine.Over() {
		return attempts.Step{Wake: attempts.Never}
	}
	c.running = slices.DeleteFunc(c.running, func(other *attempt) bool { return other == a })
	if rest {
		c.kept, c.closed, c.resumed = 1, true, true
	}
	if r.Err != nil && !r.Local {
		c.failure, c.failed = r.Err, a
	}
	c.elapse()
	step := c.engine.Ended(a.number, r, c.now)
	if c.engine.Answer() == a.number {
		c.answer = a
	}
	if a == c.committed && step.Decided == a.number && step.Decision.Retry {
		c.committed = nil // the call is resumed
	}
	c.applyStep(step)
	return step
}

// Abort ends the call because a callback of the user has panicked.
func (c *Call) Abort() {
	c.acts.Moved = true
	if c.Over() {
		return
	}
	c.setWake(c.engine.Abort(c.now))
	for _, a := range c.running {
		a.claimed = true
		if !a.cancelled {
			a.cancelled = true
			c.acts.Cancel = append(c.acts.Cancel, a.number)
		}
	}
	c.endCall()
}

// endPanicked ends the call because an inner interceptor has panicked in attempt a. If that attempt was reported before, the call
// ends without a response.
func (c *Call) endPanicked(a *attempt) End {
	if a != nil && !a.claimed {
		return a.claim(End{Panicked: true})
	}
	if !c.Over() {
		c.elapse()
		c.applyStep(c.engine.Panicked(c.now))
	}
	return End{}
}
