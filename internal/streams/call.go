// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Call is a retried stream. It is not safe for concurrent use, and not to be copied after Start.
//
//	running ──── commit ────► committed ── first message ──► handed over
//	  ▲  │                      │   │                           │
//	  └──┼─ cut, to be resumed ─┘   └───────────┬───────────────┘
//	     └── the engine says Over ──────────────┴──► over ── RecvMsg takes what had come ──► drained
//
// Running, attempts follow each other or run beside each other, and what the application sends is kept. Committed,
// one attempt is left; what was kept is still sent to it, if it came late. Handed over, the application calls gRPC
// without asking.
type Call struct {
	engine    *attempts.Call
	set       Settings
	now       attempts.Now
	acts      Acts
	running   []*attempt // that were not reported yet, in the order in which they were sent
	committed *attempt   // the call shows this one; nil before that, and when it is resumed
	answer    *attempt   // the last that was reported and may be the call's answer
	drain     *attempt   // of which RecvMsg may still receive after the end
	refused   *attempt   // a message could not be sent to it for a reason on this side
	failure   error      // the last that a server said of an attempt that has ended
	failed    *attempt   // that attempt
	instead   *attempt   // the call has the failure of this one, since nothing could be sent again
	kept      int        // messages in the replay buffer
	offered   int        // of them, the one that SendMsg waits to send by itself, counted from 1; 0: none
	closed    bool       // the application has closed its side
	resumed   bool       // the request for the rest has replaced what was kept
	usable    bool       // an attempt could be opened
	receiving bool       // RecvMsg waits, and a message like its own can be made
	stopped   bool       // the engine knows that nobody waits for the answer any more
	over      bool
	eof       bool // the application has received io.EOF, or the one reply
	calls     int  // of the application, that have not returned
	idleSince time.Duration
	wake      time.Duration // of the engine's last step
	watch     bool
	slow      bool // wake is for a slow attempt alone
	first     attempt
	array     [2]*attempt // of running, for most calls
}

// Start begins a call whose engine was started with the given step.
func (c *Call) Start(engine *attempts.Call, s Settings, now attempts.Now, step attempts.Step) {
	*c = Call{engine: engine, set: s, now: now, idleSince: now.At}
	c.running = c.array[:0]
	c.take(step)
}

// Adapt changes the settings since the policy has come late: after the first attempt was opened, and before that
// is told with [Call.Done]. The step is that of the engine.
func (c *Call) Adapt(s Settings, step attempts.Step) {
	c.set = s
	c.take(step)
	for _, a := range c.running {
		if s.Races && a.goroutines == 0 {
			c.start(a)
		}
	}
}

// Enter begins an entrance of the driver's lock. Gone is why nobody waits for the answer any more; "" while
// somebody does.
func (c *Call) Enter(now attempts.Now, gone policy.Reason) {
	c.now = now
	if gone == "" || c.stopped || c.over {
		return
	}
	c.stopped = true
	c.elapse()
	c.take(c.engine.Stop(gone, c.now))
	for _, a := range c.running {
		c.report(c.end(a, true))
	}
}

// Exit ends an entrance of the driver's lock, and says what else the driver has to do.
func (c *Call) Exit() Acts {
	c.handOver()
	for _, a := range c.running {
		if a.live() && !a.deaf && a.sender == idle && c.behind(a) && !a.attended() {
			c.start(a)
		}
	}
	if a := c.committed; a != nil && a.finished && !a.claimed && !a.held() && !a.overdue {
		a.overdue, c.acts.Overdue = true, a.number
	}
	acts := c.acts
	acts.Wake, acts.Watch = c.wake, c.watch
	if c.calls == 0 && c.slow {
		acts.Wake = attempts.Never
	}
	acts.Idle = c.engine.Running() == 0 && !c.over
	c.acts = Acts{Cancel: acts.Cancel[:0], Go: acts.Go[:0], Report: acts.Report[:0]}
	return acts
}

// handOver lets the application and the attempt that the call is committed to deal with each other without
// asking, in each direction in which nothing is left to be sent by others, or to be taken from others.
func (c *Call) handOver() {
	a := c.committed
	c.acts.Released = c.over || a != nil && (a.deaf || !c.behind(a))
	if a == nil || c.over || a.claimed {
		return
	}
	if a.sender == idle && !a.deaf && !c.behind(a) {
		a.sender = direct
	}
	if a.receiver == idle && a.heard && c.set.ServerStreams && !c.set.Resumes {
		a.receiver = direct
	}
	if a.sender == direct {
		c.acts.Sends = a.number
	}
	if a.receiver == direct {
		c.acts.Receives = a.number
	}
}

// behind reports whether something is left to be sent to an attempt that was sent to those before it.
func (c *Call) behind(a *attempt) bool { return a.given < c.kept || c.closed && !a.closed }

// start has a goroutine do what is to be done for an attempt.
func (c *Call) start(a *attempt) {
	a.goroutines++
	c.acts.Go = append(c.acts.Go, a.number)
}

// report has the driver report an end that nobody has claimed by a call, if it is one.
func (c *Call) report(e End) {
	if e.Attempt != 0 {
		c.acts.Report = append(c.acts.Report, e)
	}
}

// take does what the engine asks for.
func (c *Call) take(step attempts.Step) {
	c.acts.Moved = true
	for _, n := range step.Cancel {
		c.cancel(c.find(n))
	}
	if step.Send > 0 {
		c.addAttempt(step.Send)
	}
	c.schedule(step)
	if step.Over {
		c.finish()
	}
}

// schedule remembers when the engine wants to look again.
func (c *Call) schedule(step attempts.Step) {
	c.wake, c.watch, c.slow = step.Wake, step.Watch, step.Slow
}

// addAttempt adds an attempt. The first is opened by NewStream, if no other runs beside it.
func (c *Call) addAttempt(n int) {
	a := &c.first
	if n > 1 {
		a = new(attempt)
	}
	a.number = n
	c.running = append(c.running, a)
	if n > 1 || c.set.Races {
		c.start(a)
	}
}

func (c *Call) cancel(a *attempt) {
	if a == nil || a.cancelled {
		return
	}
	a.cancelled = true
	c.acts.Cancel = append(c.acts.Cancel, a.number)
	c.report(c.end(a, true))
}

// finish ends the call. What the attempt holds that the application has seen, or would have seen, is still its own.
func (c *Call) finish() {
	c.over, c.acts.Over = true, true
	end := c.engine.End()
	if end.Answer == 0 {
		c.answer = nil
	}
	switch {
	case end.Panicked, c.instead != nil:
		c.drain = nil // a panic goes on in the application's next call
	case c.committed != nil:
		c.drain = c.committed
	case c.stopped:
		c.drain = c.answer
	}
}

// find is the attempt with the number n, if it was not reported yet, or the call shows it; else nil.
func (c *Call) find(n int) *attempt {
	if i := slices.IndexFunc(c.running, func(a *attempt) bool { return a.number == n }); i >= 0 {
		return c.running[i]
	}
	for _, a := range []*attempt{c.committed, c.drain, c.answer} {
		if a != nil && a.number == n {
			return a
		}
	}
	return nil
}

// newest is the youngest attempt that is live; nil if none is.
func (c *Call) newest() *attempt {
	for _, a := range slices.Backward(c.running) {
		if a.live() {
			return a
		}
	}
	return nil
}

// elapse tells the engine for how long no call of the application has waited: an attempt is not slow for one who
// does not wait for it. It comes before all other events.
func (c *Call) elapse() {
	if d := c.now.At - c.idleSince; c.calls == 0 && d > 0 {
		c.idleSince = c.now.At
		if !c.over {
			c.schedule(c.engine.Paused(d, c.now))
		}
	}
}

// commit makes a the only attempt of the call. It reports false if a has ended, or was cancelled for another.
func (c *Call) commit(a *attempt, why decision.Commit) bool {
	if c.committed != nil || c.over || a.claimed {
		return c.committed == a && !c.over
	}
	c.elapse()
	step, ok := c.engine.Commit(a.number, why, c.now)
	if ok {
		c.committed = a
	}
	c.take(step)
	return ok
}

// heard tells the engine of the first message of an attempt.
func (c *Call) heard(a *attempt) {
	if !a.heard && !a.claimed {
		a.heard = true
		c.elapse()
		c.engine.Heard(a.number, c.now)
	}
}

// Wake looks at the time and the channel again.
func (c *Call) Wake() attempts.Step {
	if c.over {
		return attempts.Step{Wake: attempts.Never}
	}
	c.elapse()
	step := c.engine.Wake(c.now)
	c.take(step)
	return step
}

// Over reports whether the answer is known.
func (c *Call) Over() bool { return c.over }

// Answer is the attempt that the call shows once it is over: its headers, trailer and peer; 0: none.
func (c *Call) Answer() int {
	for _, a := range []*attempt{c.instead, c.committed, c.drain, c.answer} {
		if a != nil {
			return a.number
		}
	}
	return 0
}
