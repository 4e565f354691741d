// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/admitting"
	"github.com/stagger-go/stagger/internal/decision"
)

// Await reports that the application waits for the response to a stream, and that the server has the whole request. From now on attempts
// are timed: the one that runs, and later ones from their beginning.
func (c *Call) Await(now Now) (step Step) {
	c.beginStep(&step)
	if c.awaited == Never {
		c.awaited = now.At
		for i := range c.running {
			c.setSlowAt(&c.running[i])
		}
	}
	c.completeStep(&step, &now)
	return step
}

// timedFrom returns when the time of an attempt began, or Never: the application does not wait yet.
func (c *Call) timedFrom(a *attempt) time.Duration { return max(a.began, c.awaited) }

// Heard reports the first message of attempt n, even if something else commits the call to it: its latency is the attempt's
// latency. It ignores an attempt that was cancelled because another one won.
func (c *Call) Heard(n int, now Now) {
	if a := c.findAttempt(n); a != nil && a.cancelled == notCancelled {
		c.noteResponse(a, true, now.At)
		a.slowAt = Never
	}
}

// noteResponse records the response of an attempt: its first message, or its end if that comes first.
func (c *Call) noteResponse(a *attempt, accepted bool, at time.Duration) {
	if a.heard {
		return
	}
	took, left := c.took(a, at), c.timeLeft(a.began)
	a.heard, a.heardIn = true, took
	if c.awaited == Never {
		c.ledger.leave(&a.held, at, admitting.End{How: admitting.Untimed, Left: left})
		return
	}
	if m := c.set.Method; m != nil {
		m.Answered(at, Answer{Took: took, Left: left, Limit: c.attemptTimeout(), Accepted: accepted})
	}
	c.ledger.leave(&a.held, at, admitting.End{How: admitting.Answered, Took: took, Left: left})
}

// took returns the latency of an attempt's first message or response, or how long it has taken until now.
func (c *Call) took(a *attempt, at time.Duration) time.Duration {
	switch {
	case a.heard:
		return a.heardIn
	case c.awaited == Never:
		return at - a.began
	default:
		return at - c.timedFrom(a)
	}
}

// attemptTimeout returns the per-attempt timeout; 0: none.
func (c *Call) attemptTimeout() time.Duration {
	if c.set.NeverSlow {
		return 0
	}
	return c.set.Policy.PerAttemptTimeout()
}

// late reports whether an attempt was answered too late. Such a response does not show that extra attempts help: in an overload,
// it would pay for the next ones and make the overload worse.
func (c *Call) late(a *attempt, at time.Duration) bool {
	timeout := c.attemptTimeout()
	return timeout > 0 && c.awaited != Never && c.took(a, at) > timeout
}

// learn reports the end of an attempt to method and admission, as a response or as lost. If the call was committed to the attempt before
// its first message, its end isn't a response: the application decides how long it takes. A slow attempt that lost would have taken
// longer.
func (c *Call) learn(a *attempt, r *Result, is decision.Class, lost bool, at time.Duration) {
	if c.commit.attempt != a.number && r.isAnswer(is) {
		c.noteResponse(a, r.accepted(), at)
		return
	}
	m, took := c.set.Method, c.took(a, at)
	outlasted := lost && a.slow && !a.heard && r.Local && !r.Foreign && c.awaited != Never // not a fast one: how long it has run says nothing
	if m != nil && outlasted && took > 0 {
		m.Outlasted(at, took)
	}
	c.ledger.leave(&a.held, at, admitting.End{How: c.lostHow(a, r, at), Left: c.timeLeft(a.began)})
	c.ending.missed = c.ending.missed || m != nil && !r.Foreign && c.missedDeadline(a, r, at) && m.Slow(took) && !m.Evidence(at).Well
}

// lostHow returns how an attempt has ended without a response.
func (c *Call) lostHow(a *attempt, r *Result, at time.Duration) admitting.How {
	switch {
	case r.Foreign:
	case c.missedDeadline(a, r, at):
		if a.number == 1 { // later attempts had less time
			return admitting.Missed
		}
	case r.Status.Code() == codes.ResourceExhausted && !r.Final: // else the message is too large
		return admitting.Full
	}
	return admitting.Other
}

// missedDeadline reports whether an attempt had no response at its call's deadline.
func (c *Call) missedDeadline(a *attempt, r *Result, at time.Duration) bool {
	// Within a fiftieth of the time, since clocks differ, and servers also know the deadline.
	return r.Status.Code() == codes.DeadlineExceeded && c.timeLeft(at) <= c.timeLeft(a.began)/50
}

// isAnswer reports whether a result is a response: a server's result of its work. Refusals, retryable failures and ended
// contexts don't show how fast the server works.
func (r *Result) isAnswer(is decision.Class) bool {
	switch {
	case r.Foreign:
		return false
	case r.Err == nil:
		return true
	case r.Final:
		return false
	}
	switch r.Status.Code() {
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	default:
		return !is.Retryable
	}
}
