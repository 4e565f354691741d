// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"slices"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// Call is the life of one call. It is not safe for concurrent use and not to be copied; Start and Adopt begin
// it anew.
//
//	Start, Adopt
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
	state   policy.Call
	phase   phase
	began   time.Duration
	sent    int       // attempts
	known   int       // of them, that the driver was told of
	running []attempt // in the order in which they were sent
	ended   attempt   // the last that has ended: it holds something until the event is over
	pending pending
	floor   time.Duration // nothing is sent before, by the server's word
	connect time.Duration // until when a connection is waited for; Never: not begun
	slot    bool          // a wait slot is held
	shadow  permit        // of the attempt that would have been sent, until the call is over
	spare   permit        // of an unsent attempt, for its successor, while the event lasts
	let     policy.Reason // why a slow attempt was let go on alone
	said    error         // the last that a server said before the answer, to attempt saidTo
	saidTo  int
	local   bool          // the answer so far is what became of a context
	idle    time.Duration // since when no attempt runs; Never while one does
	asked   time.Duration // when the policy was asked last
	off     policy.Reason // why nothing could be sent any more then; "": it could
	end     End
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

// Start asks admission and the breaker, tells the budget, and sends the first attempt.
func (c *Call) Start(s Settings, now Now) Step {
	c.begin(s, now.At)
	c.phase = over // if the breaker panics, the budget is told nothing
	step := Step{Wake: Never}
	if !c.admit(now.At) {
		return c.Refuse()
	}
	done, err := c.allowFirst()
	if err != nil {
		c.end = End{Reason: policy.ReasonBreakerOpen, Err: err}
		step.Over = true
		return step
	}
	c.phase = open
	c.add(&step, permit{}, done, now.At)
	c.set.Budget.Start(now.At)
	c.arm(&c.running[0])
	return c.finish(step, now)
}

// Refuse ends a call that admission has refused, before its first attempt.
func (c *Call) Refuse() Step {
	c.phase = over
	c.end = End{Reason: policy.ReasonOverloaded, Err: errOverloaded}
	return Step{Wake: Never, Over: true}
}

// Adopt takes over a call whose first attempt was sent at began without the engine, its budget told, admitted if
// there is admission, and no breaker asked. The end of attempt 1 is its next event.
func (c *Call) Adopt(s Settings, began time.Duration) {
	c.begin(s, began)
	var step Step
	c.add(&step, permit{}, nil, began)
	c.known = 1
	c.arm(&c.running[0])
}

// Adapt changes what the call was begun with while its first attempt runs, since its policy has become known by
// then: all but breaker and admission, which have let the attempt through, if there were any.
func (c *Call) Adapt(s Settings, now Now) Step {
	step := c.step()
	if c.phase == over {
		return step
	}
	s.Breaker, s.Admission = c.set.Breaker, c.set.Admission
	c.set = s
	c.state.MaxAttempts, c.state.Deadline, c.state.InPlace = s.MaxAttempts, s.Wall, s.Alone
	for i := range c.running {
		c.arm(&c.running[i])
	}
	return c.finish(step, now)
}

func (c *Call) begin(s Settings, at time.Duration) {
	*c = Call{set: s, phase: open, began: at, floor: at, connect: Never, idle: Never, cancels: c.cancels[:0]}
	c.running = c.first[:0]
	c.state.MaxAttempts, c.state.Deadline, c.state.InPlace = s.MaxAttempts, s.Wall, s.Alone
}

// Ended reports the end of attempt n, once, of those that were cancelled too.
func (c *Call) Ended(n int, r Result, now Now) Step {
	step := c.step()
	i := slices.IndexFunc(c.running, func(a attempt) bool { return a.number == n })
	if c.phase == over || i < 0 {
		return c.finish(step, now)
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
		c.said, c.saidTo = r.Err, n
	}
	if r.Unsent {
		c.spare, a.permit = a.permit, permit{}
	}
	if c.set.Admission != nil && r.Utilization > 0 {
		c.set.Admission.Reported(now.At, r.Utilization)
	}
	if c.isAnswer(&r) {
		c.countAnswer(a, now.At)
	}
	c.uncount(a)
	if c.state.Committed == policy.CommitNone && c.isAnswer(&r) { // else its length is the application's business
		c.answered(a, now.At)
	}
	switch {
	case r.Panicked:
		c.panicked(&step, a, now)
	case a.cancelled == outrun, c.phase == gone && a.cancelled == replaced && r.Local:
		c.lost(&step, a, &r, now)
	case r.accepted():
		c.accept(&step, a, now)
	case c.phase == gone:
		c.leftover(&step, a, &r, now)
	case a.cancelled == replaced && r.Local:
		c.makeWay(&step, a, now)
	default:
		c.failed(&step, a, &r, now)
	}
	c.unspend(&c.spare, now.At)
	return c.finish(step, now)
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
	return c.finish(step, now)
}

// Stop reports that nobody waits for the call any more: ReasonCancelled, ReasonDeadlineExceeded, or
// ReasonClosed for the connection. Attempts that run end by themselves, since their contexts are the call's.
// The driver looks at the context before every other event.
func (c *Call) Stop(reason policy.Reason, now Now) Step {
	step := c.step()
	if c.phase == open || c.phase == committed {
		c.phase = gone
		c.drop(now.At)
		c.end.Reason, c.end.Commit = reason, policy.CommitNone
		if reason != policy.ReasonClosed || len(c.running) > 0 { // else the caller gets what the last attempt brought
			c.end.Answer, c.end.Err = 0, nil
		}
	}
	return c.finish(step, now)
}

// Panicked reports that an inner interceptor, or an observer, has panicked, and not as the end of an attempt. The call is
// over when those that run have ended.
func (c *Call) Panicked(now Now) Step {
	step := c.step()
	if c.phase != over {
		c.choose(&step, 0, errPanicked, policy.ReasonNonRetryable, now.At)
		c.end.Panicked = true
	}
	return c.finish(step, now)
}

// Commit makes n the only attempt of the call, since the application is about to see what it brings. It
// reports false if n has ended, or was cancelled for another: what it brought is then dropped. A message that has come
// is another event, Heard.
func (c *Call) Commit(n int, why policy.Commit, now Now) (Step, bool) {
	step := c.step()
	i := slices.IndexFunc(c.running, func(a attempt) bool { return a.number == n })
	if i < 0 {
		return c.finish(step, now), false
	}
	a := &c.running[i]
	if a.cancelled != no {
		a.dropped = true
		return c.finish(step, now), false
	}
	switch c.phase {
	case open:
		c.phase, c.state.Committed = committed, why
		c.drop(now.At)
	case gone:
		c.end.Answer, c.end.Err = 0, nil // those that have ended brought what the application does not see
	default:
	}
	c.cancelOthers(&step, n)
	return c.finish(step, now), true
}

// Abort settles everything after a callback (budget, breaker, observer) has panicked inside of an event or
// between two: permits, the breaker's leave, the slot, the budget's Start. What panics meanwhile is dropped.
// The driver cancels Step.Cancel, waits for its goroutines, and panics on. It ends the call.
func (c *Call) Abort(now Now) Step {
	step := c.step()
	if c.phase == over {
		return step
	}
	c.phase = over
	swallow(func() { c.drop(now.At) })
	swallow(func() { c.unspend(&c.spare, now.At) })
	swallow(func() { c.settle(&c.ended, errPanicked, false, now.At) })
	swallow(func() { c.settleShadow(false, now.At) })
	for i := range c.running {
		a := &c.running[i]
		if a.cancelled == no && a.number <= c.known {
			step.Cancel = append(step.Cancel, a.number)
		}
		c.uncount(a)
		swallow(func() { c.settle(a, errPanicked, false, now.At) })
	}
	c.running = c.running[:0]
	swallow(func() { c.set.Budget.Finish(now.At, budget.EndFailed) })
	c.end = End{Reason: policy.ReasonNonRetryable, Panicked: true, Err: errPanicked, Attempts: c.sent, Hedges: c.end.Hedges}
	step.Over = true
	return step
}

// Running is how many attempts have not ended.
func (c *Call) Running() int { return len(c.running) }

// Hedge reports whether attempt n, which runs, was sent beside others.
func (c *Call) Hedge(n int) bool {
	return slices.ContainsFunc(c.running, func(a attempt) bool { return a.number == n && a.hedge })
}

// Over reports whether the call has ended, and nothing of it runs.
func (c *Call) Over() bool { return c.phase == over }

// End is how the call ended, after the step with Over.
func (c *Call) End() End { return c.end }

// step begins the step of an event.
func (c *Call) step() Step { return Step{Cancel: c.cancels[:0], Wake: Never} }

// finish completes the step of an event: the call is over when nothing runs and nothing is to follow.
func (c *Call) finish(step Step, now Now) Step {
	c.cancels, c.known = step.Cancel[:0], c.sent
	switch {
	case c.phase == over:
	case len(c.running) == 0 && !c.pending.decided:
		c.conclude(now.At)
		step.Over = true
	case c.phase == open:
		step.Wake, step.Watch, step.Slow = c.wake()
	}
	return step
}

// conclude ends the call, and tells the budget.
func (c *Call) conclude(at time.Duration) {
	c.settleShadow(c.end.Reason == policy.ReasonSucceeded, at)
	if c.phase == gone && c.end.Reason == policy.ReasonDeadlineExceeded && c.let != "" {
		c.end.Reason = c.let // what let a slow attempt run into the deadline
	}
	c.phase = over
	c.end.Attempts = c.sent
	if c.idle != Never {
		c.end.Waited += at - c.idle
	}
	failed := c.end.Err != nil || c.end.Answer == 0
	if failed && c.saidTo != c.end.Answer {
		c.end.Last = c.said
	}
	switch {
	case failed:
		c.set.Budget.Finish(at, budget.EndFailed)
	case c.sent == 1:
		c.set.Budget.Finish(c.began, budget.EndAtOnce)
	default:
		c.set.Budget.Finish(at, budget.EndSucceeded)
	}
}

func swallow(f func()) {
	defer func() { _ = recover() }()
	f()
}
