// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// pending is the attempt that was decided on, until it is sent.
//
//	          ┌── the channel is down ◄──► it is up: spread ─────────────┐
//	decided ──┤                                                          ├── due ──┬──────────────────► sent
//	          └── backoff, or the server's delay ────────────────────────┘         └── replaces ended ──┘
//
// It is given up when another attempt answers or commits, fails and so is decided on anew, or the caller goes;
// and for a reason of its own: closed, breaker_open, not_connected, too_many_waiting, deadline_too_close.
type pending struct {
	decision policy.Decision
	due      time.Duration
	permit   permit
	replaces int           // the attempt that makes way, and has not ended yet; 0: none
	decided  bool          // there is one
	down     bool          // it waits for the channel
	since    time.Duration // when that began
	look     time.Duration // when the channel is looked at again
}

// slow asks what follows the newest attempt, if that is slow by now.
func (c *Call) slow(step *Step, now Now) {
	newest := c.newest()
	if newest == nil || newest.number != c.sent || now.At < newest.slowAt {
		return
	}
	newest.slow, newest.slowAt = true, Never
	out := policy.Outcome{Status: timedOut, TimedOut: true}
	d := c.decide(step, newest.number, &out, now)
	if !d.Retry {
		c.let = d.Reason
		return
	}
	c.schedule(d, now)
}

// decide asks the policy.
func (c *Call) decide(step *Step, n int, out *policy.Outcome, now Now) policy.Decision {
	c.state.Safe, c.state.InRetry = c.set.Facts.Safe(), c.set.Facts.InRetry()
	if c.off = c.set.Facts.Off(); c.off == "" && c.shadow.held {
		c.off = policy.ReasonModeOff // a call has one shadow
	}
	d := c.set.Policy.Decide(&c.state, out, c.gates(now.At), now.Wall, now.Chance)
	if c.off != "" && d.Reason == policy.ReasonBreakerOpen {
		d.Reason = c.off // all questions before that have been answered with yes
	}
	shadow := d.Retry && c.set.Observe
	if shadow {
		c.shadow, c.pending.permit = c.pending.permit, permit{}
		d.Retry = false
	}
	step.Decided, step.Decision, step.TimedOut = n, d, out.TimedOut
	if shadow {
		d.Reason = policy.ReasonModeOff
	}
	return d
}

// schedule makes d the pending attempt. If nobody knows yet whether that is paid for, it waits at least as long as that
// takes, as a rule.
func (c *Call) schedule(d policy.Decision, now Now) {
	c.pending.decided, c.pending.decision = true, d
	c.pending.due = later(now.At, d.Delay)
	if p := &c.pending.permit; p.Asked {
		c.pending.due = max(c.pending.due, p.At)
	}
	c.postpone(now)
}

// postpone lets the pending attempt wait for the server's word, if that is later, with a slot like all waits.
func (c *Call) postpone(now Now) {
	p := &c.pending
	p.due = max(p.due, c.floor)
	switch {
	case p.due <= now.At:
	case p.due > c.latest():
		c.giveUp(policy.ReasonDeadlineTooClose, now)
	case !c.enter():
		c.giveUp(policy.ReasonTooManyWaiting, now)
	}
}

// launch sends the pending attempt when it is due, the channel is up and the breaker agrees.
func (c *Call) launch(step *Step, now Now) {
	p := &c.pending
	if p.decided {
		if off := c.set.Facts.Off(); off != "" {
			c.giveUp(off, now)
		}
	}
	if !p.decided || p.replaces != 0 || !c.connected(now) || now.At < p.due {
		return
	}
	if !c.confirmed(now.At) {
		c.giveUp(policy.ReasonBudgetExhausted, now)
		return
	}
	if a := c.inTheWay(); a != nil {
		if c.set.Breaker != nil && c.set.Breaker.Open() {
			c.giveUp(policy.ReasonBreakerOpen, now) // an attempt is abandoned only for another
			return
		}
		a.cancelled, p.replaces = replaced, a.number
		step.Cancel = append(step.Cancel, a.number)
		return
	}
	done, err := c.allow()
	if err != nil {
		c.giveUp(policy.ReasonBreakerOpen, now)
		return
	}
	c.add(step, p.permit, done, now.At)
	c.leave()
	c.arm(&c.running[len(c.running)-1])
}

// confirmed reports whether the pending attempt is paid for, once the wait is over: a budget may have promised what
// it had to ask a pool for.
func (c *Call) confirmed(at time.Duration) bool {
	p := &c.pending.permit
	if !p.held || !p.Asked {
		return true
	}
	confirmer, ok := c.set.Budget.(budget.Confirmer)
	if !ok { // as of a budget that is wrapped in another type: nobody knows, and the permit is given back
		return false
	}
	paid := *p
	*p = permit{} // one that is refused is neither returned nor settled
	if !confirmer.Confirm(at, paid.Permit) {
		return false
	}
	paid.Asked = false
	*p = paid
	return true
}

// inTheWay is the attempt that must end before the pending one is sent, if they must not run beside each other.
func (c *Call) inTheWay() *attempt {
	if c.set.Policy.Parallel() && !c.set.Alone {
		return nil
	}
	return c.newest()
}

// newest is the youngest attempt that runs and was not cancelled; nil if none does.
func (c *Call) newest() *attempt {
	for i := len(c.running) - 1; i >= 0; i-- {
		if a := &c.running[i]; a.cancelled == no {
			return a
		}
	}
	return nil
}

// connected reports whether the channel can take the pending attempt. While it cannot, the attempt waits here
// and not in gRPC: with a slot, for so long, and spread at the end, so that calls do not come back together. The wait is
// for restarts: nobody waits in an outage that is older than one.
func (c *Call) connected(now Now) bool {
	p := &c.pending
	if c.set.ConnectWait == 0 && !c.set.FailFast {
		return true
	}
	if !now.Down {
		if p.down {
			p.down = false
			p.due = max(p.due, later(now.At, c.spread(now)))
		}
		return true
	}
	if c.connect == Never {
		wait := c.set.ConnectWait
		if c.set.MaxOutage > 0 {
			wait = min(wait, max(c.set.MaxOutage-now.Outage, 0))
		}
		c.connect = min(later(now.At, wait), c.latest())
	}
	if !p.down {
		p.down, p.since, p.look = true, now.At, now.At
	}
	if now.At >= p.look {
		p.look = later(now.At, c.set.Policy.Backoff().Initial)
	}
	switch {
	case now.At >= c.connect:
		c.giveUp(policy.ReasonNotConnected, now)
	case !c.enter():
		c.giveUp(policy.ReasonTooManyWaiting, now)
	}
	return false
}

// MaxOutage is how long a channel has not been usable when calls that wait for it for so long at most stop doing so: 10 s
// for 3 s, and in proportion. The wait is for restarts: with gRPC's backoff, a client sees the end of one that has taken
// 5 s after 5 to 10 s. Package interceptor's TestOutage_Bound has the table that this was chosen by.
func MaxOutage(wait time.Duration) time.Duration { return min(wait, Never/10) * 10 / 3 }

// spread is how long the pending attempt still waits when the channel is back: some times as long as it has waited
// for that. So those that have begun in an outage, one after the other, come back one after the other, over a longer
// time. It is no longer than a call may wait for the channel, and leaves half of the time before the deadline.
func (c *Call) spread(now Now) time.Duration {
	const times, least = 10, 0.25 // the first of them add less than a quarter to the load that there was before
	longest := c.set.ConnectWait
	if latest := c.latest(); latest != Never {
		longest = min(longest, max(latest-now.At, 0)/2)
	}
	if waited := now.At - c.pending.since; waited < longest/times {
		longest = times * waited
	}
	return time.Duration((least + (1-least)*now.Chance) * float64(longest))
}

// wake is when time alone changes anything, whether the channel does, and whether it is an attempt that is slow then.
func (c *Call) wake() (at time.Duration, watch, slow bool) {
	switch p, newest := &c.pending, c.newest(); {
	case p.replaces != 0:
		return Never, false, false
	case p.down && newest != nil: // nobody waits for the channel while attempts run
		return min(c.connect, p.look), false, false
	case p.down:
		return c.connect, true, false
	case p.decided:
		return p.due, false, false
	case newest != nil && newest.number == c.sent: // an older one is not asked about again
		return newest.slowAt, false, newest.slowAt != Never
	default:
		return Never, false, false
	}
}

// latest is when an attempt must be sent to be of use before the deadline.
func (c *Call) latest() time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - c.set.Policy.MinAttemptTime()
}

// giveUp drops the pending attempt for a reason of its own. Others that run go on.
func (c *Call) giveUp(reason policy.Reason, now Now) {
	c.drop(now.At)
	c.end.Reason = reason
	c.let = cmp.Or(c.let, reason)
}

// drop gives back what the pending attempt holds.
func (c *Call) drop(at time.Duration) {
	paid := c.pending.permit
	c.pending = pending{}
	defer c.unspend(&paid, at) // also if leaving panics
	c.leave()
}

// later is at+d, or Never. Clocks may stand before 0.
func later(at, d time.Duration) time.Duration {
	if at > 0 && d > Never-at {
		return Never
	}
	return at + d
}
