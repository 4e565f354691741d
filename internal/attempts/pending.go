// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"cmp"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// pending is the decided attempt until it is sent.
//
//	           ┌───────────────────────── the channel is down: disconnected ◄──────┐
//	           ▼                                                                   │
//	nothing ─► waiting: for the backoff, or the server's delay ────────────────────┘
//	           ▲ ▲   │
//	           │ │   ├── due, and the budget has said Later: it asks again ─┐
//	           │ │   │                                                      │
//	           │ └───│─────────────────── Later: another backoff ───────────┤
//	           │     │                                                      │
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
	asking   asking
	look     time.Duration // when the channel is checked again, while disconnected
}

// asking is the wait of a pending attempt whose budget has said Later. The zero value is none.
type asking struct {
	cause   budget.Cause
	until   time.Duration // when the call gives up
	backoff decision.Backoff
}

// refused reports whether the budget has said Later.
func (q *asking) refused() bool { return q.cause == budget.CauseWaited || q.backoff.Retries > 0 }

type pendingState uint8

const (
	nothing      pendingState = iota
	waiting                   // until it is due
	disconnected              // until the channel is up, or the wait for it is over
	replacing                 // until the slow attempt that it replaces, which the engine has cancelled, has ended
)

// setSlowAt sets the time at which an attempt is slow, if another attempt could follow.
func (c *Call) setSlowAt(a *attempt) {
	after, watched := SlowAfter(c.set.Policy, c.set.Method, c.set.InSequence)
	slowAt := later(c.timedFrom(a), after)
	if watched && c.set.Kind != Upload && c.attempts() < c.maxAttempts() && slowAt < c.set.Deadline {
		a.slowAt = slowAt
	}
}

// SlowAfter returns the time after which an attempt is slow. m may be nil.
func SlowAfter(p *policy.Policy, m Method, inSequence bool) (after time.Duration, watched bool) {
	if h := compiled.Of(p).Hedge; h != nil {
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
	d := c.decide(step, newest.number, decision.Classify(c.set.Policy, &out, now.Wall), false, false, now)
	if !d.Retry {
		c.ending.lastRefusal = d.Reason
	}
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
	c.pending = pending{state: waiting, decision: d, due: later(now.At, d.Delay)}
}

// setAsking makes d the pending attempt. It asks the budget again after d's delay, or at the end of the wait if that is earlier. setAsking
// returns the reason if the call doesn't wait for an answer: in an old outage, if the server's delay is longer than the wait, or if too
// many calls wait.
func (c *Call) setAsking(d decision.Decision, now Now) policy.Reason {
	young := c.set.Method == nil || c.set.Method.FailsFor(now.At) <= MaxOutage
	until := min(later(now.At, c.set.Outage.Longest), c.latest())
	earliest := max(now.At+askEvery, c.floor)
	if d.Pushback.Source != "" {
		earliest = max(earliest, later(now.At, d.Delay))
	}
	if !young || earliest > until {
		return policy.ReasonFailingEverywhere
	}
	if !c.ledger.takeSlot(WaitAnswer) {
		return policy.ReasonTooManyWaiting
	}
	c.setPending(d, now)
	c.pending.asking = asking{cause: budget.CauseWaited, until: until}
	if d.Delay == 0 {
		c.setNextQuestion(now)
	}
	c.pending.due = min(max(c.pending.due, now.At+askEvery), until)
	return ""
}

// askEvery is the shortest time between two questions: jitter may draw a wait of 0.
const askEvery = 10 * time.Millisecond

// ask asks the budget for the pending attempt, whose question is due, and reports whether the attempt may be sent now. If not, it sets the
// time of the next question, after another backoff, or returns the reason why the call waits no longer.
func (c *Call) ask(now Now) (allowed bool, reason policy.Reason) {
	q := &c.pending.asking
	if q.cause == 0 {
		return true, ""
	}
	free := q.cause == budget.CauseReconnected
	permission := c.ledger.allowExtra(now.At, q.cause, false)
	switch {
	case permission == budget.Yes:
		return true, ""
	case permission == budget.No && free:
		c.ledger.pending.permit = permit{held: true}
		return true, ""
	case permission == budget.No:
		return false, policy.ReasonBudgetExhausted
	case now.At >= q.until:
		return false, policy.ReasonFailingEverywhere
	}
	c.setNextQuestion(now)
	if c.pending.due > c.latest() { // as for any backoff that ends too late
		return false, policy.ReasonFailingEverywhere
	}
	c.pending.due = min(c.pending.due, q.until)
	return false, ""
}

// takeWaitSlot takes a wait slot for the pending attempt, which isn't due, or moves the one that it has to its present wait. It returns the
// reason if there is none.
func (c *Call) takeWaitSlot() policy.Reason {
	if !c.ledger.takeSlot(c.waitsFor()) {
		return policy.ReasonTooManyWaiting
	}
	return ""
}

// waitsFor returns what the pending attempt waits for, which isn't due.
func (c *Call) waitsFor() Wait {
	switch p := &c.pending; {
	case p.state == disconnected:
		return WaitConnection
	case p.asking.refused():
		return WaitAnswer
	default:
		return WaitBackoff
	}
}

// Waiting returns what the call waits for while no attempt runs.
func (c *Call) Waiting() Wait {
	if c.pending.state == nothing || len(c.running) > 0 {
		return NoWait
	}
	return c.waitsFor()
}

// setNextQuestion sets the time at which the pending attempt asks the budget again.
func (c *Call) setNextQuestion(now Now) {
	q := &c.pending.asking
	delay := decision.BackoffOf(c.set.Policy).Delay(q.backoff.Retries, q.backoff.Previous, now.Chance)
	q.backoff = decision.Backoff{Retries: q.backoff.Retries + 1, Previous: delay}
	c.pending.due = later(now.At, max(delay, askEvery))
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
		if reason := decision.Refusal(&s); reason != "" {
			return reason
		}
		return c.takeWaitSlot()
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
	allowed, reason := c.ask(now)
	switch {
	case reason != "":
		return reason
	case !allowed:
		return c.takeWaitSlot()
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
	a := c.startAttempt(at)
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
// gRPC: with a slot, for a limited time, and another backoff at the end, so that calls don't return at the same time. The wait is meant
// for restarts: in an outage that lasts longer, calls don't wait.
func (c *Call) lookAtChannel(now Now) {
	p := &c.pending
	if !now.Down {
		if p.state == disconnected {
			c.reconnected(now)
		}
		return
	}
	is := c.set.Outage
	if is.ByGRPC || is.Longest == 0 && !is.FailFast {
		return
	}
	if c.connect == Never {
		wait := min(is.Longest, max(MaxOutage-now.Outage, 0))
		c.connect = min(later(now.At, wait), c.latest())
		if p.asking.cause != 0 { // it is one wait
			c.connect = min(c.connect, p.asking.until)
		}
	}
	if p.state != disconnected {
		p.state, p.look = disconnected, now.At
	}
	if now.At >= p.look {
		p.look = later(now.At, decision.BackoffOf(c.set.Policy).Initial)
	}
}

// reconnected makes the pending attempt wait for one more backoff. If no attempt of the call has left this client, its permit is free. Then
// it asks the budget all the same, which lets calls return one after the other.
func (c *Call) reconnected(now Now) {
	p := &c.pending
	p.state = waiting
	until := max(c.connect, now.At)
	if held := &c.ledger.pending.permit; held.held && held.ended == nil && !held.resumes {
		*held = permit{}
		p.asking = asking{cause: budget.CauseReconnected, until: until}
	}
	delay := decision.BackoffOf(c.set.Policy).Delay(0, 0, now.Chance)
	if latest := c.latest(); latest != Never {
		delay = min(delay, max(latest-now.At, 0)/2) // the rest is for the attempt
	}
	p.due = max(p.due, later(now.At, delay))
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
