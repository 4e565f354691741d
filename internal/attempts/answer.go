// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
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
		c.noteAnswer(a, true, now.At)
		a.slowAt = Never
	}
}

// noteAnswer records the answer to an attempt: its first message, or its end if that comes first.
func (c *Call) noteAnswer(a *attempt, accepted bool, at time.Duration) {
	if a.heard {
		return
	}
	took, left := c.took(a, at), c.timeLeft(a.began)
	a.heard, a.heardIn = true, took
	c.set.Budget.Observe(clock.Time(at), budget.EventAnswered)
	m := c.set.Method
	if c.awaited == Never || a.unmeasured {
		if m != nil {
			m.Recovered()
		}
		c.ledger.tellAdmission(&a.held, at, admitting.End{How: admitting.Untimed, Left: left})
		return
	}
	a.speed = c.limitsOf(a.number).SpeedOf(took)
	if m != nil {
		m.Answered(at, evidence.Answer{Began: c.timedFrom(a), Took: took, Speed: a.speed, Accepted: accepted})
	}
	c.ledger.tellAdmission(&a.held, at, admitting.End{How: admitting.Answered, Took: took, Left: left})
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

// ownTimeout returns the timeout that an attempt has of its own: the per-attempt timeout or the hedging delay; 0: none.
func (c *Call) ownTimeout() time.Duration {
	if c.set.Kind == Upload {
		return 0
	}
	after, _ := SlowAfter(c.set.Policy, c.set.Method, c.set.InSequence)
	return after
}

// outlasted reports whether an attempt took longer than its own timeout, until its first message or its end.
func (c *Call) outlasted(a *attempt, at time.Duration) bool {
	return a.slow || c.took(a, at) > c.limitsOf(a.number).Fast
}

// quiet reports whether a stream's attempt has ended without a message, and nothing shows that one was late: the server of a watch may have
// nothing to tell. A timeout of the attempt's own says that a message was expected, unless the stream is one that is resumed.
func (c *Call) quiet(a *attempt, r *Result, is decision.Class) bool {
	if !c.set.ServerStreams || a.heard || a.cancelled == outrun {
		return false
	}
	timeout, _ := SlowAfter(c.set.Policy, c.set.Method, c.set.InSequence)
	return c.set.Resumes || timeout == 0 && !r.isAnswer(is)
}

// EndedSlow reports whether the attempt of the last call of Ended took longer than its own timeout, and a server has seen it.
func (c *Call) EndedSlow() bool { return c.endedSlow }

// learn reports the end of an attempt to method and admission, as a response or as lost. If the call was committed to the attempt before
// its first message, its end isn't a response: the application decides how long it takes. A slow attempt that lost would have taken
// longer.
func (c *Call) learn(a *attempt, r *Result, is decision.Class, lost bool, at time.Duration) {
	if c.commit.attempt != a.number && r.isAnswer(is) {
		c.noteAnswer(a, r.accepted(), at)
		return
	}
	m, took := c.set.Method, c.took(a, at)
	unanswered := lost && !a.heard && r.ContextEnded && r.Seen()
	measured := a.slow && c.awaited != Never && !a.unmeasured // how long an attempt has run that was not slow says nothing
	if m != nil && unanswered && measured && took > 0 {
		m.Outlasted(at, took)
	}
	c.ledger.tellAdmission(&a.held, at, admitting.End{How: c.lostHow(a, r, at), Left: c.timeLeft(a.began)})
}

// lostHow returns how an attempt has ended without a response.
func (c *Call) lostHow(a *attempt, r *Result, at time.Duration) admitting.How {
	switch {
	case !r.Seen():
	case r.Status.Code() == codes.DeadlineExceeded && c.timeLeft(at) <= c.timeLeft(a.began)/50:
		// Within a fiftieth of the time, since clocks differ, and servers also know the deadline.
		if a.number == 1 { // later attempts had less time
			return admitting.Missed
		}
	case r.Status.Code() == codes.ResourceExhausted && !r.Final: // else the message is too large
		return admitting.Full
	}
	return admitting.Other
}

// isAnswer reports whether a result is a server's answer to the request: OK, an error that speaks of the request, or what a classifier
// takes for "not yet". A reply in which it has found a failure is none. Only answers show how fast a method is, and that an extra attempt
// has helped. Any other error may be that of a server that fails every request, also an INTERNAL or UNKNOWN that isn't retried.
func (r *Result) isAnswer(is decision.Class) bool {
	switch {
	case !r.Seen(), r.FailsOK():
		return false
	case r.Err == nil, r.Again && r.Well:
		return true
	case r.Final, is.Retryable:
		return false
	}
	return ofRequest(r.Status.Code())
}

// ofRequest reports whether a code speaks of the request, and not of the server.
func ofRequest(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unauthenticated:
		return true
	default:
		return false
	}
}
