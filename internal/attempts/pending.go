// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// pending is the decided attempt until it is sent.
//
//	          ┌── the channel is down ◄──► it is up: spread ─────────────┐
//	decided ──┤                                                          ├── due ──┬──────────────────► sent
//	          └── backoff, or the server's delay ────────────────────────┘         └── replaces ended ──┘
//
// It is dropped when another attempt is answered or committed, when another attempt fails and a new decision replaces it, when
// the caller goes, and for the reasons of [decision.Refusal].
type pending struct {
	decision decision.Decision
	due      time.Duration
	replaces int           // the attempt that it replaces, which has not ended yet; 0: none
	decided  bool          // there is a pending attempt
	down     bool          // it waits for the channel
	since    time.Duration // when that began
	look     time.Duration // when the channel is checked again
}

// slow decides what follows the newest attempt, if it is slow by now.
func (c *Call) slow(step *Step, now Now) {
	newest := c.newestAttempt()
	if newest == nil || newest.number != c.sent || now.At < newest.slowAt {
		return
	}
	if c.waitsForConnection(newest, now) {
		return
	}
	newest.slow, newest.slowAt = true, Never
	out := decision.Outcome{Status: timedOut, TimedOut: true}
	d := c.decide(step, newest.number, c.set.Policy.Classify(&out, now.Wall), now)
	if !d.Retry {
		c.let = d.Reason
		return
	}
	c.setPending(d, now)
}

// connectPoll is how often a call with a hedging delay of 0 looks whether its attempt has a connection.
const connectPoll = 10 * time.Millisecond

// waitsForConnection reports whether a slow attempt may only wait for a connection: another attempt would wait for the same one. It sets
// the time of the next look. The attempt's time begins when the channel was seen connected.
func (c *Call) waitsForConnection(a *attempt, now Now) bool {
	unconnected := now.Connecting || now.Down
	if !unconnected && !a.unconnected {
		return false
	}
	after, _ := SlowAfter(c.set.Policy, c.set.Method, c.set.Alone)
	if unconnected {
		after = max(after, connectPoll)
	}
	a.unconnected = unconnected
	a.slowAt = later(now.At, after)
	if a.slowAt >= c.set.Deadline {
		a.slowAt = Never
	}
	return a.slowAt > now.At
}

// decide asks the policy.
func (c *Call) decide(step *Step, n int, is decision.Class, now Now) decision.Decision {
	c.state.Safe, c.state.InRetry = c.set.Facts.Safe(), c.set.Facts.InRetry()
	c.state.MaxAttempts, c.state.Deadline, c.state.InPlace = c.set.MaxAttempts, c.set.Wall, c.set.Alone
	g := c.ask(now.At)
	if g.off == "" && c.ledger.shadow.permit.held {
		g.off = policy.ReasonModeOff // a call has at most one shadow
	}
	d := c.set.Policy.Decide(&c.state, is, g, now.Wall, now.Chance)
	shadow := d.Retry && c.set.Observe
	if shadow {
		c.ledger.shadow, c.ledger.pending = c.ledger.pending, held{}
		d.Retry = false
	}
	step.Decided, step.Decision, step.TimedOut = n, d, is.TimedOut
	if shadow {
		d.Reason = policy.ReasonModeOff
	}
	return d
}

// setPending makes d the pending attempt.
func (c *Call) setPending(d decision.Decision, now Now) {
	c.pending.decided, c.pending.decision = true, d
	c.pending.due = later(now.At, d.Delay)
}

// launch sends the pending attempt if it is due and not refused, or first cancels the attempt that it replaces.
func (c *Call) launch(step *Step, now Now) {
	p := &c.pending
	if !p.decided {
		return
	}
	phase, old := c.progress(now)
	if reason := decision.Refusal(phase, c.ask(now.At)); reason != "" {
		c.giveUp(reason, now.At)
		return
	}
	switch phase {
	case decision.PhaseReplacing:
		old.cancelled, p.replaces = replaced, old.number
		step.Cancel = append(step.Cancel, old.number)
	case decision.PhaseSending:
		c.sendPending(step, now.At)
	default:
	}
}

// progress returns the phase of the pending attempt, and the attempt that it replaces.
func (c *Call) progress(now Now) (phase decision.Phase, old *attempt) {
	p := &c.pending
	if p.replaces != 0 {
		return decision.PhaseReplaced, nil
	}
	c.lookAtChannel(now)
	p.due = max(p.due, c.floor)
	if p.down || now.At < p.due {
		return decision.PhaseWaiting, nil
	}
	if !c.set.Policy.Parallel() || c.set.Alone {
		old = c.newestAttempt()
		if old != nil {
			return decision.PhaseReplacing, old
		}
	}
	return decision.PhaseSending, nil
}

// sendPending sends the pending attempt, which takes over everything held for it.
func (c *Call) sendPending(step *Step, at time.Duration) {
	c.sent++
	c.ledger.reportSent(&c.ledger.pending, at)
	a := c.addRunning(at)
	a.hedge = c.pending.decision.Reason == policy.ReasonHedge
	if a.hedge {
		c.hedges++
	}
	if c.idle != Never {
		c.waited += at - c.idle
		c.idle = Never
	}
	c.let = ""
	c.state.Sent(c.pending.decision)
	c.pending = pending{}
	step.Send = c.sent
	c.ledger.releaseSlot()
	c.setSlowAt(a)
}

// addRunning makes the last that was sent one that runs, with what is held for it.
func (c *Call) addRunning(at time.Duration) *attempt {
	c.running = append(c.running, attempt{})
	a := &c.running[len(c.running)-1]
	a.Timing, a.number, a.slowAt = NewTiming(at, c.set.Uploads), c.sent, Never
	c.ledger.movePending(&a.held)
	return a
}

// newestAttempt returns the newest attempt that runs and isn't cancelled, or nil.
func (c *Call) newestAttempt() *attempt {
	for i := len(c.running) - 1; i >= 0; i-- {
		if a := &c.running[i]; a.cancelled == no {
			return a
		}
	}
	return nil
}

// exhausted reports whether no attempt is left.
func (c *Call) exhausted() bool {
	most := c.set.Policy.MaxAttempts()
	if c.set.MaxAttempts > 0 {
		most = min(most, c.set.MaxAttempts)
	}
	return c.state.Attempts >= most
}

// lookAtChannel checks whether the channel can take the pending attempt. While it can't, the attempt waits here rather than in
// gRPC: with a slot, for a limited time, and spread at the end, so that calls don't return at the same time. The wait is meant
// for restarts: in an outage that lasts longer, calls don't wait.
func (c *Call) lookAtChannel(now Now) {
	p := &c.pending
	if !now.Down {
		if p.down {
			p.down = false
			p.due = max(p.due, later(now.At, c.spread(now)))
		}
		return
	}
	is := c.set.Facts.ConnectWait()
	if is.Longest == 0 && !is.FailFast {
		return
	}
	if c.connect == Never {
		wait := is.Longest
		if is.MaxOutage > 0 {
			wait = min(wait, max(is.MaxOutage-now.Outage, 0))
		}
		c.connect = min(later(now.At, wait), c.latest())
	}
	if !p.down {
		p.down, p.since, p.look = true, now.At, now.At
	}
	if now.At >= p.look {
		p.look = later(now.At, c.set.Policy.Backoff().Initial)
	}
}

// MaxOutage returns the length of an outage after which calls with this maximum wait stop waiting: 10 s for 3 s, and in
// proportion. The wait is meant for restarts: with gRPC's backoff, a client notices the end of a restart of 5 s after 5 to 10
// s. docs/evidence/outages.md has the table behind this choice.
func MaxOutage(wait time.Duration) time.Duration { return min(wait, Never/10) * 10 / 3 }

// spread returns how long the pending attempt still waits when the channel is back: a multiple of its wait for the channel. So
// calls that have begun one after the other in an outage return one after the other, over a longer time. The result is at most
// a call's longest wait for the channel, and leaves half of the time before the deadline.
func (c *Call) spread(now Now) time.Duration {
	const times, least = 10, 0.25 // the first ones add less than a quarter to the load before the outage
	longest := c.set.Facts.ConnectWait().Longest
	if latest := c.latest(); latest != Never {
		longest = min(longest, max(latest-now.At, 0)/2)
	}
	if waited := now.At - c.pending.since; waited < longest/times {
		longest = times * waited
	}
	return time.Duration((least + (1-least)*now.Chance) * float64(longest))
}

// nextWake returns the time at which the call must be woken, whether the channel can also change anything, and whether an attempt
// is slow then.
func (c *Call) nextWake() (at time.Duration, watch, slow bool) {
	switch p, newest := &c.pending, c.newestAttempt(); {
	case p.replaces != 0:
		return Never, false, false
	case p.down && newest != nil: // attempts that run don't wait for the channel
		return min(c.connect, p.look), false, false
	case p.down:
		return c.connect, true, false
	case p.decided:
		return p.due, false, false
	case newest != nil && newest.number == c.sent: // an older one isn't decided on again
		return newest.slowAt, false, newest.slowAt != Never
	default:
		return Never, false, false
	}
}

// latest returns the last time at which an attempt can be sent before the deadline.
func (c *Call) latest() time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - decision.MinAttemptTime
}

// giveUp drops the pending attempt for its own reason. Running attempts continue.
func (c *Call) giveUp(reason policy.Reason, at time.Duration) {
	c.drop(at)
	c.reason = reason
	c.let = cmp.Or(c.let, reason)
}

// drop releases everything that the pending attempt holds.
func (c *Call) drop(at time.Duration) {
	c.pending = pending{}
	c.ledger.release(&c.ledger.pending, outcome{unused: true}, at)
}

// later returns at+d, or Never. Times may be negative.
func later(at, d time.Duration) time.Duration {
	if at > 0 && d > Never-at {
		return Never
	}
	return at + d
}
