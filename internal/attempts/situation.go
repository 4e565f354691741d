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

// decide collects what matters for what follows attempt n, asks the policy, and takes what another attempt needs.
func (c *Call) decide(step *Step, n int, is decision.Class, followed bool, now Now) decision.Decision {
	s := c.situation(now)
	s.Class, s.Followed = is, followed
	if c.used.announced {
		s.Off = policy.ReasonModeOff
	}
	s.Gate, s.Evidence = c.closedGate(now.At), c.evidence()
	d := decision.Decide(&s)
	announce := d.Retry && c.set.Observe
	switch {
	case announce:
		c.used.announced = true
		d.Retry = false
	case d.Retry:
		if reason := c.takeRoom(d, is, c.overtaken(n, s.Evidence), now.At); reason != "" {
			c.unpaid = reason == policy.ReasonBudgetExhausted && !is.TimedOut && c.budgetWaits(now.At)
			if !c.unpaid {
				d = d.Refused(reason)
			}
		}
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
		Policy: c.set.Policy, Attempts: c.attempts(), Limit: c.limit(), Committed: c.commit.why, Stopped: c.used.stopped,
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

// takeRoom takes what an attempt needs that all other checks allow: a wait slot, if it waits, and the budget's permit. It takes both or
// nothing, and returns the reason for nothing, or "".
func (c *Call) takeRoom(d decision.Decision, is decision.Class, overtaken bool, at time.Duration) policy.Reason {
	if d.Delay > 0 && !c.ledger.takeSlot() {
		return policy.ReasonTooManyWaiting
	}
	cause := budget.CauseFailure
	switch {
	case is.TimedOut && overtaken:
		cause = budget.CauseOvertaken
	case is.TimedOut:
		cause = budget.CauseSlow
	}
	if !c.ledger.allowExtra(at, cause, is.Unsent) {
		c.ledger.releaseSlot()
		return policy.ReasonBudgetExhausted
	}
	return ""
}

// budgetWaits reports whether everything fails, so that a retry waits until something succeeds.
func (c *Call) budgetWaits(at time.Duration) bool {
	w, ok := c.set.Budget.(interface{ Waits(now time.Time) bool })
	return ok && c.set.Connect.Longest > 0 && (c.set.Method == nil || c.set.Method.FailsFor(at) <= 5*time.Second) && w.Waits(clock.Time(at)) && c.ledger.takeSlot()
}

func (c *Call) reportFailure(at time.Duration) {
	if c.set.Method != nil {
		c.set.Method.Failed(at)
	}
	c.set.Budget.Observe(clock.Time(at), budget.EventAttemptFailed)
}
