// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/policy"
)

// gates answer the policy's checks for an event of a call: whether another attempt follows, and whether it may be sent.
type gates struct {
	call *Call
	at   time.Duration // when it happens
	off  policy.Reason // why nothing may be sent any more
	err  error         // of the breaker
}

var (
	_ decision.Gates     = (*gates)(nil)
	_ decision.Departure = (*gates)(nil)
)

// ask returns the gates for an event.
func (c *Call) ask(at time.Duration) *gates {
	c.gates = gates{call: c, at: at, off: c.set.Facts.Off()}
	return &c.gates
}

// Off implements [decision.Switch].
func (g *gates) Off() policy.Reason { return g.off }

// Open implements [decision.Breaker].
func (g *gates) Open() bool { return g.call.set.Breaker != nil && g.call.set.Breaker.Open() }

// Allow implements [decision.Departure].
func (g *gates) Allow() bool {
	g.err = g.call.ledger.allow()
	return g.err == nil
}

// SlowEverywhere implements [decision.Answers].
func (g *gates) SlowEverywhere(out decision.Outcome) bool {
	e, known := g.call.evidence(g.at)
	return known && (e.Queue() || out.TimedOut && e.LongNow)
}

// evidence returns what the target's last outcomes show, if there is a record of them.
func (c *Call) evidence(at time.Duration) (e latency.Evidence, known bool) {
	if m := c.set.Method; m != nil {
		return m.Evidence(at, c.timeLeft(c.began)), true
	}
	return e, false
}

// Overloaded implements [decision.Overload].
func (g *gates) Overloaded() bool {
	m := g.call.set.Method
	return m != nil && m.Queued(g.at, g.call.timeLeft(g.at))
}

// Admit implements [decision.Departure].
func (g *gates) Admit() bool { return g.call.ledger.admit(g.at, g.call.timeLeft(g.at)) }

// NotConnected implements [decision.Departure].
func (g *gates) NotConnected() bool { return g.call.pending.down && g.at >= g.call.connect }

// TooLate implements [decision.Departure].
func (g *gates) TooLate() bool { return g.call.pending.due > g.call.latest() }

// TakeSlot implements [decision.WaitLimit]. In OBSERVE, an attempt does not wait.
func (g *gates) TakeSlot() bool { return g.call.set.Observe || g.call.ledger.takeSlot() }

// ReleaseSlot implements [decision.WaitLimit].
func (g *gates) ReleaseSlot() { g.call.ledger.releaseSlot() }

// Fail implements [decision.Budget].
func (g *gates) Fail() { g.call.set.Budget.Fail(g.at) }

// Withdraw implements [decision.Budget]. A budget pays only for requests that a server sees: an unsent extra attempt passes its
// permit to its successor, and an unsent first attempt makes its successor free.
func (g *gates) Withdraw(out decision.Outcome, factor float64) bool {
	charge := budget.Charge{Cause: budget.CauseFailure, Factor: factor}
	switch {
	case out.TimedOut:
		charge.Cause = budget.CauseTimeout
	case out.Unsent:
		charge.Cause = budget.CauseUnsent
	}
	// Reserves of many small clients exceed what a service can bear. So they pay for nothing in a queue, and for an attempt beside a
	// slow one only while all is fast.
	if e, known := g.call.evidence(g.at); known && !out.Unsent {
		few := e.FewFast()
		charge.Slow = few && !e.New
		charge.EarnedOnly = e.LongNow || few && e.Long > 0 || out.TimedOut && !e.AllFast()
	}
	return g.call.ledger.withdraw(g.at, charge)
}

// timeLeft returns the time until the call's deadline.
func (c *Call) timeLeft(at time.Duration) time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - at
}
