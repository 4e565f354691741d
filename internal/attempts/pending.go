// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// pending is the decided attempt until it is sent.
//
//	           ┌───────────────────────── the channel is down: disconnected ◄──────┐
//	           ▼                                                                   │
//	nothing ─► waiting: for the backoff, the server's delay, or a spread ──────────┘
//	           ▲     │
//	           │     ├── due, and another attempt has to end for it: replacing ─┐
//	           │     │                                                          │
//	           │     └── due ──► sent ──► nothing                               │
//	           └──────────────────────── that one has ended ────────────────────┘
//
// It is dropped when another attempt is answered or committed, when another attempt fails and a new decision replaces it, when
// the caller goes, and for the reasons of [decision.Refusal].
type pending struct {
	state    pendingState
	decision decision.Decision
	due      time.Duration
	unpaid   unpaid
	since    time.Duration // when it was disconnected
	look     time.Duration // when the channel is checked again, while disconnected
}

// unpaid is the wait of an attempt for which the budget does not pay yet. The zero value is none.
type unpaid struct {
	until time.Duration // when it gives up
	cause budget.Cause
	asks  decision.Backoff
}

type pendingState uint8

const (
	nothing      pendingState = iota
	waiting                   // until it is due
	disconnected              // until the channel is up, or the wait for it is over
	replacing                 // until the attempt that it replaces has ended, which was told to
)

// setSlowAt sets the time at which an attempt is slow, if another attempt could follow.
func (c *Call) setSlowAt(a *attempt) {
	after, watched := SlowAfter(c.set.Policy, c.set.Method, c.set.InSequence)
	slowAt := later(c.timedFrom(a), after)
	if watched && !c.set.NeverSlow && c.attempts() < c.limit() && slowAt < c.set.Deadline {
		a.slowAt = slowAt
	}
}

// SlowAfter returns the time after which an attempt is slow. m may be nil.
func SlowAfter(p *policy.Policy, m Method, inSequence bool) (after time.Duration, watched bool) {
	if h := p.Compiled().Hedge; h != nil {
		return hedgeAfter(h, m), !inSequence
	}
	timeout := p.PerAttemptTimeout()
	return timeout, timeout > 0
}

// hedgeAfter returns the delay of the next hedge: the latency quantile within its bounds, if known.
func hedgeAfter(h *spec.Hedge, m Method) (after time.Duration) {
	if h.Quantile == 0 || m == nil {
		return h.HedgingDelay
	}
	quantile := m.Quantile()
	if quantile == 0 {
		return h.HedgingDelay
	}
	after = max(quantile, h.MinDelay)
	if h.MaxDelay > 0 {
		after = min(after, h.MaxDelay)
	}
	return after
}

// slow decides what follows the newest attempt, if it is slow by now.
func (c *Call) slow(step *Step, now Now) {
	newest := c.newestAttempt()
	if newest == nil || newest.number != c.used.sent || now.At < newest.slowAt {
		return
	}
	if c.waitsForConnection(newest, now) {
		return
	}
	newest.slow, newest.slowAt = true, Never
	step.Took = c.took(newest, now.At)
	out := decision.Outcome{Status: timedOut, TimedOut: true}
	d := c.decide(step, newest.number, decision.Classify(c.set.Policy, &out, now.Wall), false, now)
	if !d.Retry {
		c.ending.lastRefusal = d.Reason
		return
	}
	c.setPending(d, now)
}

// connectPoll is how often a call with a hedging delay of 0 looks whether its attempt has a connection.
const connectPoll = 10 * time.Millisecond

// waitsForConnection reports whether a slow attempt may only wait for a connection: another attempt would wait for the same one. It sets
// the time of the next look. The server's time begins when the channel was seen connected.
func (c *Call) waitsForConnection(a *attempt, now Now) bool {
	unconnected := now.Connecting || now.Down
	if !unconnected && !a.unconnected {
		return false
	}
	after, _ := SlowAfter(c.set.Policy, c.set.Method, c.set.InSequence)
	if unconnected {
		after = max(after, connectPoll)
	}
	a.unconnected = unconnected
	a.unmeasured = true
	a.slowAt = later(now.At, after)
	if a.slowAt >= c.set.Deadline {
		a.slowAt = Never
	}
	return a.slowAt > now.At
}

// setPending makes d the pending attempt.
func (c *Call) setPending(d decision.Decision, now Now) {
	c.pending.state, c.pending.decision = waiting, d
	c.pending.due = later(now.At, d.Delay)
	if c.unpaid {
		c.unpaid = false
		c.waitForBudget(now, budget.CauseWaited)
	}
}

// waitForBudget lets the pending attempt ask the budget when it is due.
func (c *Call) waitForBudget(now Now, cause budget.Cause) {
	c.pending.unpaid.until = min(later(now.At, c.set.Connect.Longest), c.latest())
	c.pending.unpaid.cause = cause
}

// askEvery is the shortest time between two questions: jitter may draw a wait of 0.
const askEvery = 10 * time.Millisecond

// askAgain returns "" if the pending attempt, for which the budget does not pay, waits for another backoff.
func (c *Call) askAgain(now Now) policy.Reason {
	u := &c.pending.unpaid
	b := decision.BackoffOf(c.set.Policy)
	delay := max(b.Delay(u.asks.Retries, u.asks.Previous, now.Chance), askEvery)
	u.asks = decision.Backoff{Retries: u.asks.Retries + 1, Previous: delay}
	c.pending.due = later(now.At, delay)
	if c.pending.due > u.until {
		return policy.ReasonBudgetExhausted
	}
	return ""
}

// launch sends the pending attempt if it is due and not refused, or first cancels the attempt that it replaces.
func (c *Call) launch(step *Step, now Now) {
	if c.pending.state == nothing {
		return
	}
	reason := c.tryLaunch(step, now)
	if reason == "" {
		return
	}
	c.drop(now.At)
	c.ending.reason = reason
	c.ending.lastRefusal = cmp.Or(c.ending.lastRefusal, reason)
}

// tryLaunch is launch. It returns why the pending attempt is not sent after all, or "".
func (c *Call) tryLaunch(step *Step, now Now) policy.Reason {
	p := &c.pending
	s := c.situation(now)
	if p.state == replacing {
		return decision.Refusal(&s)
	}
	c.lookAtChannel(now)
	p.due = max(p.due, c.floor)
	if p.state == disconnected || now.At < p.due {
		s.Waiting, s.Wait, s.Unconnected = true, p.due-now.At, p.state == disconnected && now.At >= c.connect
		reason := decision.Refusal(&s)
		if reason == "" && !c.ledger.takeSlot() {
			reason = policy.ReasonTooManyWaiting
		}
		return reason
	}
	old := c.toReplace()
	if old != nil {
		s.Gate = c.closedGate(now.At)
	}
	reason := decision.Refusal(&s)
	switch {
	case reason != "":
		return reason
	case old != nil:
		old.cancelled, p.state = replaced, replacing
		step.Cancel = append(step.Cancel, old.number)
		return ""
	}
	if p.unpaid.until != 0 && !c.ledger.allowExtra(now.At, p.unpaid.cause, false) {
		return c.askAgain(now)
	}
	if reason, _ := c.ledger.allow(c.used.sent+1, now.At, c.timeLeft(now.At)); reason != "" {
		return reason
	}
	c.sendPending(step, now.At)
	return ""
}

// toReplace returns the running attempt that has to end before another one is sent, or nil.
func (c *Call) toReplace() *attempt {
	if c.set.Policy.Parallel() && !c.set.InSequence {
		return nil
	}
	return c.newestAttempt()
}

// sendPending sends the pending attempt, which takes over everything held for it.
func (c *Call) sendPending(step *Step, at time.Duration) {
	c.used.sent++
	a := c.addRunning(at)
	a.hedge = c.pending.decision.Reason == policy.ReasonHedge
	if a.hedge {
		c.used.hedges++
	}
	c.gap.end(at)
	c.ending.lastRefusal = ""
	c.used.backoff = c.pending.decision.Backoff
	c.pending = pending{}
	step.Send = a.number
	c.ledger.releaseSlot()
	c.setSlowAt(a)
}

// lookAtChannel checks whether the channel can take the pending attempt. While it can't, the attempt waits here rather than in
// gRPC: with a slot, for a limited time, and spread at the end, so that calls don't return at the same time. The wait is meant
// for restarts: in an outage that lasts longer, calls don't wait.
func (c *Call) lookAtChannel(now Now) {
	p := &c.pending
	if !now.Down {
		if p.state == disconnected {
			p.state = waiting
			b := decision.BackoffOf(c.set.Policy)
			p.due = max(p.due, later(now.At, b.Delay(0, 0, now.Chance)))
			if c.ledger.pending.permit.ended == nil { // an attempt that was never sent was free
				c.ledger.pending.permit = permit{}
				c.waitForBudget(now, budget.CauseFailure)
			}
		}
		return
	}
	is := c.set.Connect
	if is.Longest == 0 && !is.FailFast {
		return
	}
	if c.connect == Never {
		wait := min(is.Longest, max(MaxOutage-now.Outage, 0))
		c.connect = min(later(now.At, wait), c.latest())
	}
	if p.state != disconnected {
		p.state, p.since, p.look = disconnected, now.At, now.At
	}
	if now.At >= p.look {
		p.look = later(now.At, decision.BackoffOf(c.set.Policy).Initial)
	}
}

// nextWake returns the time at which the call must be woken, whether the channel can also change anything, and whether an attempt
// is slow then.
func (c *Call) nextWake() (at time.Duration, watch, slow bool) {
	switch p, newest := &c.pending, c.newestAttempt(); {
	case p.state == disconnected && newest != nil: // attempts that run don't wait for the channel
		return min(c.connect, p.look), false, false
	case p.state == disconnected:
		return c.connect, true, false
	case p.state == waiting:
		return p.due, false, false
	case newest != nil && newest.number == c.used.sent: // an older one isn't decided on again
		return newest.slowAt, false, newest.slowAt != Never
	default:
		return Never, false, false
	}
}

// drop releases everything that the pending attempt holds.
func (c *Call) drop(at time.Duration) {
	c.pending = pending{}
	c.ledger.releasePending(at)
}

// later returns at+d, or Never. Times may be negative.
func later(at, d time.Duration) time.Duration {
	if at > 0 && d > Never-at {
		return Never
	}
	return at + d
}
