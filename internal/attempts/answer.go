// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/admitting"
	"github.com/stagger-go/stagger/internal/decision"
)

// unwaited is the maximum part of an attempt's time, one in so many, in which the application may not wait for it. If the part
// is larger, the attempt's latency says nothing about its method.
const unwaited = 8

// Paused reports that for the time d until now no call of the application has waited: this time does not make running attempts
// slow. The pauses of one call must not overlap. A driver whose application always waits, as in a unary call, has none to
// report. Other drivers report one when a call of the application begins to wait, and before each other event while none waits.
func (c *Call) Paused(d time.Duration, now Now) (step Step) {
	c.beginStep(&step)
	for i := range c.running {
		a := &c.running[i]
		if d := min(d, now.At-a.began); d > 0 {
			a.Pause(d)
			a.slowAt = later(a.slowAt, d)
			if a.slowAt >= c.set.Deadline {
				a.slowAt = Never
			}
		}
	}
	c.completeStep(&step, &now)
	return step
}

// Timing is how long an attempt has taken by its own clock, which runs while a call of the application waits.
type Timing struct {
	began       time.Duration
	paused      time.Duration // how much of its time no call of the application has waited
	asked       time.Duration // when the server had its request; Never: not yet
	pausedSince time.Duration // how much of the time since then no call of the application has waited
	heardIn     time.Duration // the latency, without pauses, of its first message or its response
	heard       bool
	unmeasured  bool // it has waited for a connection: its latency isn't the server's
}

// NewTiming returns the timing of an attempt that is sent. requestFollows is as in [Settings].
func NewTiming(at time.Duration, requestFollows bool) Timing {
	t := Timing{began: at, asked: at}
	if requestFollows {
		t.asked = Never
	}
	return t
}

// Pause stops the clock for d, which has just passed.
func (t *Timing) Pause(d time.Duration) {
	t.paused += d
	t.pausedSince += d
}

// Request records that the whole request was sent.
func (t *Timing) Request(at time.Duration) {
	if t.asked == Never {
		t.asked, t.pausedSince = at, 0
	}
}

// Hear records the attempt's response. It returns its latency, and whether that shows how fast the method is.
func (t *Timing) Hear(at time.Duration) (took time.Duration, measures bool) {
	t.heard, t.heardIn = true, t.took(at)
	return t.heardIn, t.measures(at)
}

// Requested reports that attempt n has sent the whole request: only then does the server's time for a response start.
func (c *Call) Requested(n int, now Now) {
	if a := c.findAttempt(n); a != nil {
		a.Request(now.At)
	}
}

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
	took, measures := a.Hear(at)
	left := c.timeLeft(a.began)
	if !measures {
		c.ledger.leave(&a.held, at, admitting.End{How: admitting.Untimed, Left: left})
		return
	}
	a.speed = c.limitsOf(a.number).SpeedOf(took)
	if m := c.set.Method; m != nil {
		m.Answered(at, Answer{Took: took, Speed: a.speed, Accepted: accepted})
	}
	c.ledger.leave(&a.held, at, admitting.End{How: admitting.Answered, Took: took, Left: left})
}

// took returns how long an attempt has taken until then, by its own clock.
func (t *Timing) took(at time.Duration) time.Duration {
	switch {
	case t.heard:
		return t.heardIn
	case t.asked == Never:
		return at - t.began - t.paused
	default:
		return at - t.asked - t.pausedSince
	}
}

// measures reports whether an attempt's latency shows how fast its method is.
func (t *Timing) measures(at time.Duration) bool {
	return t.asked != Never && t.pausedSince <= (at-t.asked)/unwaited && !t.unmeasured
}

// learn reports the end of an attempt to method and admission, as a response or as lost. If the call was committed to the attempt before
// its first message, its end isn't a response: the application decides how long it takes. A slow attempt that lost would have taken
// longer.
func (c *Call) learn(a *attempt, r *Result, is decision.Class, lost bool, at time.Duration) {
	if c.commit.attempt != a.number && r.isAnswer(is) {
		c.noteAnswer(a, r.accepted(), at)
		return
	}
	m, took := c.set.Method, a.took(at)
	outlasted := lost && a.slow && !a.heard && r.Local && !r.Foreign && a.measures(at) // not a fast one: how long it has run says nothing
	if m != nil && outlasted && took > 0 {
		m.Outlasted(at, took)
	}
	c.ledger.leave(&a.held, at, admitting.End{How: c.lostHow(a, r, at), Left: c.timeLeft(a.began)})
}

// lostHow returns how an attempt has ended without a response.
func (c *Call) lostHow(a *attempt, r *Result, at time.Duration) admitting.How {
	switch {
	case r.Foreign:
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

// isAnswer reports whether a result is a server's answer to the request: OK, or an error that speaks of the request. Only answers show how
// fast a method is, and that an extra attempt has helped. Any other error may be that of a server that fails every request, also an
// INTERNAL or UNKNOWN that isn't retried.
func (r *Result) isAnswer(is decision.Class) bool {
	switch {
	case r.Foreign:
		return false
	case r.Err == nil:
		return true
	case r.Final, is.Retryable:
		return false
	}
	switch r.Status.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unauthenticated:
		return true
	default:
		return false
	}
}
