// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// call is one call: of a user, or of a service for a request that it works on. It makes its attempts in the
// order that the interceptor does.
type call struct {
	gates

	link     *link
	parent   *attempt // that it is made for; nil for a user's
	state    policy.Call
	start    time.Duration
	deadline time.Duration // forever if it has none
	running  []*attempt    // in the order in which they were sent
	alarm    uint32        // of the timer that counts
	waiting  bool          // the next attempt is decided on, and waits to be sent
	over     bool
	stopped  bool // the server has forbidden further attempts
	next     policy.Decision
	slowAt   time.Duration // when the newest attempt is slow
	let      policy.Reason // why a slow attempt was let go on alone
	best     *answer
	verdict  policy.Reason
}

const forever = time.Duration(1<<63 - 1)

// The events of a call.
const (
	rings what = iota // the newest attempt is slow, or the wait before the next is over
	ends              // its time is up
)

// act implements [actor].
func (c *call) act(e *event) {
	switch {
	case c.over:
	case e.what == ends:
		c.expire()
	case e.number == c.alarm:
		c.ring()
	}
}

// first makes the first attempt.
func (c *call) first() {
	c.budget.Start(c.start)
	c.state.Attempts = 1
	if c.deadline != forever {
		c.link.deadlines.put(c)
	}
	c.send()
}

// send makes the attempt that was decided on.
func (c *call) send() {
	w := c.link.world
	a := &attempt{call: c, backend: c.link.pick(c.client), began: w.now, number: int32(c.state.Attempts)} //nolint:gosec // few
	c.equip(a)
	c.running = append(c.running, a)
	c.arm(a)
	if delay, lost := c.link.passage(); !lost {
		w.in(delay, a, arrives, 0)
	}
}

// arm sets the timer for when an attempt is slow, if that could lead to anything.
func (c *call) arm(a *attempt) {
	c.alarm++
	after, watched := c.link.patience()
	if !watched || c.stopped || c.state.Attempts >= min(c.link.policy.MaxAttempts(), c.state.MaxAttempts) {
		return
	}
	if c.deadline-a.began <= after {
		return
	}
	c.slowAt = a.began + after
	c.wake(after)
}

// wake sets the timer.
func (c *call) wake(after time.Duration) {
	c.alarm++
	c.link.world.in(after, c, rings, c.alarm)
}

// ring makes the attempt that is due, or asks what follows one that is slow.
func (c *call) ring() {
	if c.waiting {
		c.launch()
		return
	}
	newest := c.running[len(c.running)-1]
	if int(newest.number) < c.state.Attempts {
		return // it has failed, and the others go on
	}
	newest.slow = true
	d := c.decide(&policy.Outcome{Status: timedOut, TimedOut: true})
	switch {
	case !d.Retry:
		c.let = d.Reason
	case d.Delay > 0:
		c.await(d)
	default:
		c.next = d
		c.launch()
	}
}

// await lets the wait before the next attempt pass.
func (c *call) await(d policy.Decision) {
	c.waiting, c.next = true, d
	c.wake(d.Delay)
}

// launch sends the next attempt: beside those that run, or in the place of the one that does.
func (c *call) launch() {
	c.waiting = false
	if !c.link.policy.Races() {
		c.let = ""
		for _, a := range c.running {
			c.Fail()
			c.settle(a, false)
			a.abandon()
		}
		c.running = c.running[:0]
	}
	c.state.Sent(c.next)
	c.send()
}

// decide asks the policy.
func (c *call) decide(out *policy.Outcome) policy.Decision {
	l := c.link
	if c.deadline != forever {
		c.state.Deadline = clock(c.deadline)
	}
	d := l.policy.Decide(&c.state, out, c, clock(l.world.now), l.jitter.Float64())
	l.tell(c, out, d)
	return d
}

// clock is a time of the run as the policy sees it.
func clock(at time.Duration) time.Time { return time.Unix(0, int64(at)) }

// timedOut is the outcome of an attempt that has used up its per-attempt timeout, as the interceptor words it.
var timedOut = status.New(codes.DeadlineExceeded, "per-attempt timeout")
