// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Call is the life of one call. It is not safe for concurrent use and not to be copied; Start begins it anew.
//
//	Start ──── Succeeded: nothing was to be decided ──────────────────────► over
//	  │    ┌──────── it is resumed ──────────┐
//	  ▼    ▼                                 │
//	 open ─────────── Commit ──────────► committed ──┐
//	  │                                      │       ├── Stop ──► gone ──┐
//	  │                             it has ended     │                   │
//	  │                                      ▼       │                   ├── nothing runs ──► over
//	  ├── accepted, fatal, panic ────────► answered ─│───────────────────┤
//	  ├──────────────────────────────────────────────┘                   │
//	  └── the last attempt has ended, and none follows ──────────────────┘
//
// Attempts run in every state but over. One is pending, and sent, only while open: after a backoff, a
// pushback, a wait for a connection, or the end of an attempt that makes way for it. Start goes to over at
// once if admission or the breaker refuses.
type Call struct {
	set     Settings
	state   decision.Call
	gates   gates // of the last event that has asked the policy
	ledger  ledger
	phase   phase
	began   time.Duration
	sent    int       // attempts
	hedges  int       // of them, those that were sent beside others
	known   int       // of them, that the driver was told of
	running []attempt // in the order in which they were sent
	ended   attempt   // the last that has ended: it holds something until the event is over
	pending pending
	floor   time.Duration   // nothing is sent before, by the server's word
	connect time.Duration   // until when a connection is waited for; Never: not begun
	idle    time.Duration   // since when no attempt runs; Never while one does
	waited  time.Duration   // with no attempt running, before that
	answer  answer          // as it stands
	reason  policy.Reason   // why no attempt follows, as it stands
	commit  decision.Commit // with ReasonCommitted
	let     policy.Reason   // why a slow attempt was let go on alone
	worked  bool            // a server may have worked on an attempt that has ended
	stopped bool            // a server has forbidden another call, too, and not only named a delay that is too long for this one
	said    answer          // the last that a server said before the answer
	panics  bool            // the call ends with a panic
	end     End
	used    bool // there was an event other than Start
	cancels []int
	first   [2]attempt // saves most calls an allocation
}

type phase uint8

const (
	over phase = iota
	open
	committed // the application has seen part of one attempt
	answered  // the answer is known, and what else runs is cancelled
	gone      // nobody waits for the answer any more
)

// answer is what an attempt brought.
type answer struct {
	attempt int // 0: none
	err     error
	local   bool // it is what became of a context
}

// Start asks whether the call may be made, tells the budget, and sends the first attempt.
func (c *Call) Start(s Settings, now Now) Step {
	c.begin(&s, now.At)
	c.gates = gates{call: c, now: now}
	if reason := decision.Refusal(decision.PhaseFirst, &c.gates); reason != "" {
		return c.refuse(reason, now)
	}
	c.sent, c.idle = 1, Never
	c.state.Sent(decision.Decision{})
	c.running = append(c.running, c.newAttempt(now.At))
	c.ledger.start(now.At)
	c.arm(&c.running[0])
	step := Step{Send: 1, Wake: Never}
	return c.finish(&step, &now)
}

// refuse ends a call before its first attempt.
func (c *Call) refuse(reason policy.Reason, now Now) Step {
	c.reason, c.answer.err = reason, c.gates.err
	if reason == policy.ReasonOverloaded {
		c.answer.err = errOverloaded
	}
	c.drop(now.At)
	step := c.step()
	return c.finish(&step, &now)
}

// Succeeded reports that the first attempt has brought what is wanted, and what its server has reported of itself. It does
// what Ended would do, and less: if anything was decided before, it does nothing, and reports false.
func (c *Call) Succeeded(utilization float64, at time.Duration) bool {
	if c.phase != open || c.used {
		return false
	}
	c.ended, c.running = c.running[0], c.running[:0]
	if c.set.Method != nil && utilization > 0 {
		c.set.Method.Reported(at, utilization)
	}
	if c.set.Method != nil {
		c.answered(&c.ended, true, at)
	}
	c.ledger.release(&c.ended.held, outcome{helped: true}, at)
	c.phase = over
	c.end = End{Reason: policy.ReasonSucceeded, Answer: 1, Attempts: 1}
	c.ledger.finish(c.began, balance.EndAtOnce)
	return true
}

// Adapt changes what the call was begun with while its first attempt runs, since its policy has become known by
// then: all but the breaker, which has let the attempt through, if there was one, and the method, if it knows of the
// attempt. The budgets were told.
func (c *Call) Adapt(s Settings, now Now) Step {
	step := c.step()
	if c.phase == over {
		return step
	}
	known := c.set.Method
	s.Breaker, s.Method = c.set.Breaker, cmp.Or(known, s.Method)
	c.take(&s)
	for i := range c.running {
		a := &c.running[i]
		if known == nil && !a.heard {
			c.ledger.count(&a.held, now.At)
		}
		c.arm(a)
	}
	return c.finish(&step, &now)
}

// begin makes c a call that has done nothing yet. Start, and Succeeded after it, leave all other fields as they are in a
// new one.
func (c *Call) begin(s *Settings, at time.Duration) {
	if c.used {
		*c = Call{cancels: c.cancels[:0]}
	}
	c.phase, c.began, c.floor, c.connect, c.idle = open, at, at, Never, at
	c.running, c.sent, c.known, c.state = c.first[:0], 0, 0, decision.Call{}
	c.take(s)
}

// take makes s what the call goes by.
func (c *Call) take(s *Settings) {
	c.set = *s
	c.state.MaxAttempts, c.state.Deadline, c.state.InPlace = s.MaxAttempts, s.Wall, s.Alone
	c.ledger.budget, c.ledger.slots, c.ledger.breaker, c.ledger.method = s.Budget, s.Slots, s.Breaker, s.Method
}

// Ended reports the end of attempt n, once, of those that were cancelled too.
func (c *Call) Ended(n int, r Result, now Now) Step {
	step := c.step()
	i := slices.IndexFunc(c.running, func(a attempt) bool { return a.number == n })
	if c.phase == over || i < 0 {
		return c.finish(&step, &now)
	}
	c.ended = c.running[i]
	a := &c.ended
	c.running = slices.Delete(c.running, i, i+1)
	if len(c.running) == 0 {
		c.idle = now.At
	}
	if !r.Unsent && !c.pending.down {
		c.connect = Never
	}
	if a.dropped { // what it brought was not shown, so how it ended means nothing
		r.Err, r.Local = errTimedOut, true
	}
	if r.Err != nil && !r.Local && !r.Panicked && c.phase != answered {
		c.said = answer{attempt: n, err: r.Err}
	}
	if r.Unsent {
		c.ledger.spare.permit, a.held.permit = a.held.permit, permit{}
	}
	lost := a.cancelled == outrun || c.phase == gone && a.cancelled == replaced && r.Local
	var is decision.Class // of what is wanted, nothing needs to be known
	if !r.accepted() {
		is = c.set.Policy.Classify(&r.Outcome, now.Wall)
	}
	c.worked = c.worked || is.Worked()
	c.learn(a, &r, is, lost, now.At)
	switch {
	case r.Panicked:
		step.Place = a.place(PlaceLost)
		c.panicked(&step, n, now.At)
		c.ledger.release(&a.held, outcome{err: errPanicked}, now.At)
	case lost:
		c.lost(&step, a, &r, now)
	case r.accepted():
		c.accept(&step, a, now)
	case c.phase == gone:
		c.leftover(&step, a, &r, now)
	case a.cancelled == replaced && r.Local:
		c.makeWay(&step, a, now)
	default:
		c.failed(&step, a, &r, is, now)
	}
	c.ledger.release(&c.ledger.spare, outcome{unused: true}, now.At)
	return c.finish(&step, &now)
}

// Wake looks at the time and the channel again: at Step.Wake, on a change with Step.Watch, or at any time.
func (c *Call) Wake(now Now) Step {
	step := c.step()
	if c.phase == open {
		if !c.pending.decided {
			c.slow(&step, now)
		}
		c.launch(&step, now)
	}
	return c.finish(&step, &now)
}

// Stop reports that nobody waits for the call any more: ReasonCancelled, ReasonDeadlineExceeded, or
// ReasonClosed for the connection. Attempts that run end by themselves, since their contexts are the call's.
// The driver looks at the context before every other event.
func (c *Call) Stop(reason policy.Reason, now Now) Step {
	step := c.step()
	if c.phase == open || c.phase == committed {
		c.phase = gone
		c.drop(now.At)
		c.reason, c.commit = reason, decision.CommitNone
		if reason != policy.ReasonClosed || len(c.running) > 0 { // else the caller gets what the last attempt brought
			c.answer = answer{}
		}
	}
	return c.finish(&step, &now)
}

// Panicked reports that an inner interceptor, or an observer, has panicked, and not as the end of an attempt. The call is
// over when those that run have ended.
func (c *Call) Panicked(now Now) Step {
	step := c.step()
	if c.phase != over {
		c.panicked(&step, 0, now.At)
	}
	return c.finish(&step, &now)
}

// Commit makes n the only attempt of the call, since the application is about to see what it brings. It
// reports false if n has ended, or was cancelled for another: what it brought is then dropped. A message that has come
// is another event, Heard.
func (c *Call) Commit(n int, why decision.Commit, now Now) (Step, bool) {
	step := c.step()
	a := c.find(n)
	if a == nil {
		return c.finish(&step, &now), false
	}
	if a.cancelled != no {
		a.dropped = true
		return c.finish(&step, &now), false
	}
	a.committed = why != decision.CommitNone
	switch c.phase {
	case open:
		c.phase, c.state.Committed = committed, why
		c.drop(now.At)
	case gone:
		c.answer = answer{} // those that have ended brought what the application does not see
	default:
	}
	c.cancelOthers(&step, n)
	return c.finish(&step, &now), true
}

// Abort settles everything after a callback (budget, breaker, observer) has panicked inside of an event or
// between two. What panics meanwhile is dropped. The driver cancels Step.Cancel, waits for its goroutines, and panics on.
// It ends the call.
func (c *Call) Abort(now Now) Step {
	step := c.step()
	if c.phase == over {
		return step
	}
	for i := range c.running {
		if a := &c.running[i]; a.cancelled == no && a.number <= c.known {
			step.Cancel = append(step.Cancel, a.number)
		}
	}
	c.ledger.abort(now.At, &c.ended.held, c.running)
	c.running, c.pending = c.running[:0], pending{}
	c.answer, c.reason, c.commit, c.said, c.panics = answer{err: errPanicked}, policy.ReasonNonRetryable, decision.CommitNone, answer{}, true
	return c.finish(&step, &now)
}

// Running is how many attempts have not ended.
func (c *Call) Running() int { return len(c.running) }

// Hedge reports whether attempt n, which runs, was sent beside others.
func (c *Call) Hedge(n int) bool {
	a := c.find(n)
	return a != nil && a.hedge
}

// Over reports whether the call has ended, and nothing of it runs.
func (c *Call) Over() bool { return c.phase == over }

// Answer is the attempt whose end is the call's as things stand; 0: none.
func (c *Call) Answer() int { return c.answer.attempt }

// End is how the call ended, after the step with Over.
func (c *Call) End() End { return c.end }

// step begins the step of an event other than Start.
func (c *Call) step() Step {
	c.used = true
	return Step{Cancel: c.cancels[:0], Wake: Never}
}

// finish completes the step of an event: the call is over when nothing runs and nothing is to follow.
func (c *Call) finish(step *Step, now *Now) Step {
	c.cancels, c.known = step.Cancel[:0], c.sent
	switch {
	case c.phase == over:
	case len(c.running) == 0 && !c.pending.decided:
		c.conclude(now)
		step.Over = true
	case c.phase == open:
		step.Wake, step.Watch, step.Slow = c.wake()
	}
	return *step
}

// conclude ends the call, and tells the budget.
func (c *Call) conclude(now *Now) {
	at := now.At
	if c.phase == gone && c.reason == policy.ReasonDeadlineExceeded && c.let != "" {
		c.reason = c.let // what let a slow attempt run into the deadline
	}
	retryAfter := c.retryAfter(*now) // first, since what it asks may panic
	c.ledger.release(&c.ledger.shadow, outcome{helped: c.reason == policy.ReasonSucceeded}, at)
	c.phase = over
	c.end = End{
		Reason: c.reason, Commit: c.commit, Answer: c.answer.attempt, Err: c.answer.err,
		Attempts: c.sent, Hedges: c.hedges, Waited: c.waited, RetryAfter: retryAfter, Panicked: c.panics,
	}
	if c.idle != Never {
		c.end.Waited += at - c.idle
	}
	failed := c.end.Err != nil || c.end.Answer == 0
	if failed && c.said.attempt != c.end.Answer {
		c.end.Last = c.said.err
	}
	switch {
	case failed:
		c.ledger.finish(at, balance.EndFailed)
	case c.sent == 1:
		c.ledger.finish(c.began, balance.EndAtOnce)
	default:
		c.ledger.finish(at, balance.EndSucceeded)
	}
}
