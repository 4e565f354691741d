// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/policy"
)

// decide collects what matters for what follows attempt n, asks the policy, takes what another attempt needs, and makes it the pending one.
// long says that attempt n was a resumed stream's, and ran for long.
func (c *Call) decide(step *Step, n int, is decision.Class, followed, long bool, now Now) decision.Decision {
	s := c.situation(now)
	s.Class, s.Followed = is, followed
	if c.used.announced {
		s.Off = policy.ReasonModeOff
	}
	s.Gate, s.Evidence = c.closedGate(now.At), c.evidence()
	d := decision.Decide(&s)
	announce := d.Retry && c.set.AnnounceOnly
	switch {
	case announce:
		c.used.announced = true
		d.Retry = false
	case d.Retry:
		if reason := c.takeRoom(d, c.causeOf(n, is, s.Evidence), is.Origin == decision.Unsent, long, now); reason != "" {
			d = d.Refused(reason)
		}
		d.ForAnswer = c.pending.asking.cause == budget.CauseWaited
		c.used.forAnswer = c.used.forAnswer || d.ForAnswer
	}
	step.Decided, step.Decision, step.TimedOut = n, d, is.TimedOut
	step.Answers = evidence.Summary{Evidence: s.Evidence, Limits: c.limitsOf(n)}
	c.ending.answers = step.Answers
	if announce {
		d.Reason = policy.ReasonModeOff // of the call; observers hear why it would have been retried
	}
	return d
}

// situation returns what a decision, or a refusal, depends on, but for what its caller adds.
func (c *Call) situation(now Now) decision.Situation {
	return decision.Situation{
		Policy: c.set.Policy, Attempts: c.attempts(), MaxAttempts: c.maxAttempts(), Committed: c.commit.why, Stopped: c.used.stopped,
		Safe: c.set.Safe, InRetry: c.set.InRetry, InSequence: c.set.InSequence, Backoff: c.used.backoff,
		Off: now.Off, Left: c.timeLeft(now.At), Chance: now.Chance,
	}
}

// closedGate returns the reason of a gate that would not let the next attempt pass now, or "". It takes nothing.
func (c *Call) closedGate(at time.Duration) policy.Reason {
	switch {
	case c.set.Breaker != nil && c.set.Breaker.Open(c.used.sent+1) != nil:
		return policy.ReasonBreakerOpen
	case c.set.Admission != nil && !c.set.Admission.Open(at, c.timeLeft(at)):
		return policy.ReasonOverloaded
	default:
		return ""
	}
}

// evidence returns what the method's last answers show. Without a record of them, nothing forbids another attempt.
func (c *Call) evidence() evidence.Evidence {
	if c.set.Method == nil {
		return evidence.Evidence{Known: evidence.Remembered}
	}
	return c.set.Method.Evidence()
}

// causeOf returns why an attempt follows attempt n.
func (c *Call) causeOf(n int, is decision.Class, shown evidence.Evidence) budget.Cause {
	switch {
	case !is.TimedOut:
		return budget.CauseFailure
	case c.overtaken(n, shown):
		return budget.CauseOvertaken
	default:
		return budget.CauseSlow
	}
}

// overtaken reports whether a later attempt than attempt n was answered, while no answer is slow: then only this attempt is slow, and not
// the method.
func (c *Call) overtaken(n int, shown evidence.Evidence) bool {
	a := c.findAttempt(n)
	return a != nil && c.set.Method != nil && shown.Slow == 0 && c.set.Method.AnsweredSince(c.timedFrom(a))
}

// limitsOf returns how long the answer to attempt n may take, which runs or has just ended.
func (c *Call) limitsOf(n int) evidence.Limits {
	a := c.findAttempt(n)
	if a == nil {
		a = &c.ended
	}
	from := a.began
	if c.awaited != Never {
		from = c.timedFrom(a)
	}
	return evidence.LimitsOf(c.ownTimeout(), c.timeLeft(from))
}

// takeRoom takes what the next attempt needs, after all other checks have allowed it: a wait slot, if it waits, and the budget's permit.
// The permit is free after an attempt that was not sent, and after a stream that ran for long. takeRoom makes the attempt the pending one,
// or takes nothing and returns the reason. If the budget says Later, the attempt waits without a permit.
func (c *Call) takeRoom(d decision.Decision, cause budget.Cause, unsent, long bool, now Now) policy.Reason {
	if d.Delay > 0 && !c.ledger.takeSlot(WaitBackoff) {
		return policy.ReasonTooManyWaiting
	}
	reason := policy.Reason("")
	switch c.ledger.allowExtra(now.At, cause, unsent || long) {
	case budget.Yes:
		if long {
			c.ledger.pending.permit.resumes = true
		}
		c.setPending(d, now)
	case budget.Later:
		reason = policy.ReasonFailingEverywhere
		if cause == budget.CauseFailure { // a slow attempt still runs, and may be answered
			reason = c.setAsking(d, now)
		}
	default:
		reason = policy.ReasonBudgetExhausted
	}
	if reason != "" {
		c.ledger.releaseSlot()
	}
	return reason
}

// reportFailure tells budget and method of a failed attempt.
func (c *Call) reportFailure(at time.Duration) {
	if c.set.Method != nil {
		c.set.Method.Failed(at)
	}
	c.set.Budget.Observe(clock.Time(at), budget.EventAttemptFailed)
}
