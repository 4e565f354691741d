// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Call is a retried stream. It is not safe for concurrent use, and must not be copied after Init.
//
//	running ──── commit ────► committed ── first message ──► handed over
//	  ▲  │                      │   │                           │
//	  └──┼─ cut, to be resumed ─┘   └───────────┬───────────────┘
//	     └── the engine says Over ──────────────┴──► over ── RecvMsg takes what had come ──► drained
//
// While running, attempts follow one another or run in parallel, and the application's messages are kept. Once committed, the
// call has one attempt, which is still sent the kept messages that it lacks. Once handed over, the application calls gRPC
// without asking.
type Call struct {
	engine    *attempts.Call  // nil until it has started
	timing    attempts.Timing // of the first attempt, until then
	caller    Caller
	set       Settings
	now       attempts.Now
	acts      Acts
	running   []*attempt    // not yet reported, in the order of sending
	committed *attempt      // the call shows this one; nil before, and when it is resumed
	answer    *attempt      // the last reported attempt that may be the call's response
	drain     *attempt      // RecvMsg may still receive from it after the end
	refused   *attempt      // the attempt that failed to send a message, for a local reason
	failure   error         // the last error that a server returned for an attempt
	failed    *attempt      // the attempt of failure
	instead   *attempt      // the call returns the failure of this attempt, because a message could not be resent
	kept      int           // messages in the replay buffer
	offered   int           // the number of the kept message that SendMsg waits to send itself, from 1; 0: none
	closed    bool          // the application has closed its side
	resumed   bool          // the resume request has replaced the kept messages
	usable    bool          // an attempt has been opened
	receiving bool          // RecvMsg waits, and a message of its type can be made
	stopped   policy.Reason // the engine was told to stop, because the response is no longer needed
	final     error         // the result of the call; nil: the call isn't over
	later     error         // RecvMsg has returned it after the end was claimed: an inner interceptor had received ahead
	shown     error         // the application gets it in place of final; may be nil
	telling   bool          // the caller's OnFinish has begun
	told      bool          // the caller knows the result
	eof       bool          // the application has received io.EOF, or the one reply
	calls     int           // of the application, running
	idleSince time.Duration
	wake      time.Duration // of the engine's last step
	watch     bool
	slow      bool // wake is only for a slow attempt
	first     attempt
	array     [1]*attempt // backs running for most calls
}

// Init prepares a call, which is zero. Until Start, it can only be aborted. Engine is nil for a call that begins without it.
func (c *Call) Init(engine *attempts.Call, caller Caller, s Settings) {
	c.engine, c.caller, c.set, c.wake, c.running = engine, caller, s, attempts.Never, c.array[:0]
}

// Begin is Start without the engine, for a call whose first attempt needs no question and can't be slow. Until Join, the driver
// uses Lend, GiveBack, AtOnce, FinishHeld and Exit only.
func (c *Call) Begin(at time.Duration) {
	c.timing = attempts.NewTiming(at, true)
	c.now.At, c.idleSince = at, at
	c.addAttempt(1)
}

// Joined reports whether the engine has started, or the call is over without it.
func (c *Call) Joined() bool { return c.engine != nil || c.Over() }

// Join starts the engine with what has happened since Begin.
func (c *Call) Join(engine *attempts.Call, set *attempts.Settings) {
	c.engine = engine
	c.setWake(engine.Join(set, c.timing))
	if c.committed != nil {
		c.engine.Commit(1, decision.CommitMessage, c.now)
	}
}

// Start takes the result of the engine's Start.
func (c *Call) Start(now attempts.Now, step attempts.Step) {
	c.now, c.idleSince = now, now.At
	c.applyStep(step)
}

// Enter is called whenever the driver has taken its lock. Gone is the reason why the response is no longer needed, or "" if it
// is.
func (c *Call) Enter(now attempts.Now, gone policy.Reason) {
	c.now = now
	if gone == "" || c.stopped != "" || c.Over() {
		return
	}
	c.stopped = gone
	c.elapse()
	c.applyStep(c.engine.Stop(gone, c.now))
	for _, a := range c.running {
		c.queueReport(c.claimEnd(a, true))
	}
}

// Exit is called before the driver releases its lock. It returns what else the driver has to do. The driver then calls Acted.
func (c *Call) Exit() *Acts {
	c.handOver()
	for _, a := range c.running {
		if a.live() && !a.deaf && a.sender == idle && c.behind(a) && !a.attended() {
			c.startGoroutine(a)
		}
	}
	acts := &c.acts
	if a := c.committed; a != nil && a.finished && !a.claimed && !a.held() && !a.overdue {
		a.overdue, acts.Overdue = true, a.number
	}
	acts.Wake, acts.Watch = c.wake, c.watch
	if c.calls == 0 && c.slow {
		acts.Wake = attempts.Never
	}
	acts.Idle = c.engine != nil && c.engine.Running() == 0 && !c.Over()
	return acts
}

// Acted forgets what the driver has done.
func (c *Call) Acted() {
	a := &c.acts
	a.Cancel, a.Go, a.Report = a.Cancel[:0], a.Go[:0], a.Report[:0]
	a.Over, a.Moved, a.Overdue, a.Sends, a.Receives = false, false, 0, 0, 0
}

// handOver lets the application use the committed attempt without asking, in each direction in which no other task has anything
// left to send or to receive. A stream of one message ends before: as long as RecvMsg asks, OnFinish need not report the end.
func (c *Call) handOver() {
	a := c.committed
	c.acts.Released = c.Over() || a != nil && (a.deaf || !c.behind(a))
	if a == nil || c.Over() || a.claimed {
		return
	}
	if a.sender == idle && !a.deaf && !c.behind(a) {
		a.sender = direct
	}
	if a.receiver == idle && a.again && c.set.ServerStreams && !c.set.Resumes {
		a.receiver = direct
	}
	if a.sender == direct {
		c.acts.Sends = a.number
	}
	if a.receiver == direct {
		c.acts.Receives = a.number
	}
}

// behind reports whether the attempt lacks kept messages, or the close.
func (c *Call) behind(a *attempt) bool { return a.given < c.kept || c.closed && !a.closed }

// startGoroutine starts a goroutine for an attempt.
func (c *Call) startGoroutine(a *attempt) {
	a.goroutines++
	c.acts.Go = append(c.acts.Go, a.number)
}

// queueReport has the driver report an end, if there is one.
func (c *Call) queueReport(e End) {
	if e.Attempt != 0 {
		c.acts.Report = append(c.acts.Report, e)
	}
}

// applyStep carries out a step of the engine.
func (c *Call) applyStep(step attempts.Step) {
	c.acts.Moved = true
	for _, n := range step.Cancel {
		c.cancel(c.findAttempt(n))
	}
	if step.Send > 0 {
		c.addAttempt(step.Send)
	}
	c.setWake(step)
	if step.Over {
		c.endCall()
	}
}

// setWake stores when the engine wants to be called again.
func (c *Call) setWake(step attempts.Step) {
	c.wake, c.watch, c.slow = step.Wake, step.Watch, step.Slow
}

// addAttempt adds an attempt. NewStream opens the first one, unless attempts race.
func (c *Call) addAttempt(n int) {
	a := &c.first
	if n > 1 {
		a = new(attempt)
	}
	a.number = n
	c.running = append(c.running, a)
	if n > 1 || c.set.Races {
		c.startGoroutine(a)
	}
}

func (c *Call) cancel(a *attempt) {
	if a == nil || a.cancelled {
		return
	}
	a.cancelled = true
	c.acts.Cancel = append(c.acts.Cancel, a.number)
	c.queueReport(c.claimEnd(a, true))
}

// endCall ends the call. That it is over and its result are one value, so no order can come between them. The application may
// still receive the messages of the attempt that it has seen, or would have seen.
func (c *Call) endCall() {
	end := c.engine.End()
	if end.Answer == 0 {
		c.answer = nil
	}
	if !end.Panicked && c.instead == nil { // else the application's next call panics again, or has the error of another attempt
		c.drain = cmp.Or(c.committed, c.answer)
	}
	tell, final := c.caller.Conclude(c.Answer())
	c.final, c.told, c.acts.Over = final, !tell, true
}

// findAttempt returns the attempt with the number n if it isn't reported yet or the call shows it, else nil.
func (c *Call) findAttempt(n int) *attempt {
	if i := slices.IndexFunc(c.running, func(a *attempt) bool { return a.number == n }); i >= 0 {
		return c.running[i]
	}
	for _, a := range []*attempt{c.committed, c.answer} {
		if a != nil && a.number == n {
			return a
		}
	}
	return nil
}

// newestAttempt returns the newest live attempt, or nil.
func (c *Call) newestAttempt() *attempt {
	for _, a := range slices.Backward(c.running) {
		if a.live() {
			return a
		}
	}
	return nil
}

// elapse tells the engine for how long no call of the application was running: that time doesn't make an attempt slow. It is
// called before all other events.
func (c *Call) elapse() {
	if d := c.now.At - c.idleSince; c.calls == 0 && d > 0 {
		c.idleSince = c.now.At
		switch {
		case c.Over():
		case c.engine == nil:
			c.timing.Pause(d)
		default:
			c.setWake(c.engine.Paused(d, c.now))
		}
	}
}

// commit makes a the only attempt of the call. It returns false if a has ended, or was cancelled because another one won.
func (c *Call) commit(a *attempt, why decision.Commit) bool {
	if c.committed != nil || c.Over() || a.claimed {
		return c.committed == a && !c.Over()
	}
	c.elapse()
	step, ok := c.engine.Commit(a.number, why, c.now)
	if ok {
		c.committed = a
	}
	c.applyStep(step)
	return ok
}

// heard tells the engine that an attempt has received its first message.
func (c *Call) heard(a *attempt) {
	if !a.heard && !a.claimed {
		a.heard = true
		c.elapse()
		c.engine.Heard(a.number, c.now)
	}
}

// Wake has the engine check the time and the channel again.
func (c *Call) Wake() attempts.Step {
	if c.Over() {
		return attempts.Step{Wake: attempts.Never}
	}
	c.elapse()
	step := c.engine.Wake(c.now)
	c.applyStep(step)
	return step
}

// Over reports whether the response is known.
func (c *Call) Over() bool { return c.final != nil }

// Final returns the result of the call, io.EOF after success; nil while it isn't over.
func (c *Call) Final() error { return c.final }

// Stopped returns the reason with which the call's context or connection has ended, or "".
func (c *Call) Stopped() policy.Reason { return c.stopped }

// Telling records that the caller's OnFinish starts. Calls of the application that begin from now on may be its own.
func (c *Call) Telling() { c.telling = true }

// Told records that the caller has been told of the end, as [Caller] required.
func (c *Call) Told() { c.told, c.acts.Moved = true, true }

// Answer returns the attempt whose headers, trailer and peer the call shows once it is over, or 0.
func (c *Call) Answer() int {
	if a := cmp.Or(c.instead, c.committed, c.answer); a != nil {
		return a.number
	}
	return 0
}
