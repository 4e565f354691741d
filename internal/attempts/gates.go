// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
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

// SlowEverywhere implements [decision.Responses].
func (g *gates) SlowEverywhere() bool { return g.evidence().Queue }

// ProvenFast implements [decision.Responses].
func (g *gates) ProvenFast() bool { return g.evidence().Fast }

// evidence returns what the target's last responses show. Without a record of them, nothing forbids another attempt.
func (g *gates) evidence() latency.Evidence {
	if m := g.call.set.Method; m != nil {
		return m.Evidence(g.at)
	}
	return latency.Evidence{Fast: true}
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
func (g *gates) Fail() { g.call.reportFailure(g.at) }

func (c *Call) reportFailure(at time.Duration) {
	c.set.Budget.Observe(clock.Time(at), budget.EventAttemptFailed)
}

// AllowExtra implements [decision.Budget].
func (g *gates) AllowExtra(out decision.Outcome) bool {
	cause := budget.CauseFailure
	if out.TimedOut {
		cause = budget.CauseSlow
	}
	return g.call.ledger.allowExtra(g.at, cause, out.Unsent)
}

// timeLeft returns the time until the call's deadline.
func (c *Call) timeLeft(at time.Duration) time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - at
}
