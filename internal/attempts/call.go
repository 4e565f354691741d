// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/policy"
)

// Call is the state of one call. It is not safe for concurrent use, and must not be copied. Start also reuses it for another
// call, as the simulator does.
//
//	Start, Join
//	  │    ┌──────── it is resumed ──────────┐
//	  ▼    ▼                                 │
//	 open ─────────── Commit ──────────► committed ── it has ended ──► chosen ──┐
//	  │                                      │                          ▲ ▲     │
//	  ├── accepted, fatal ───────────────────│──────────────────────────┘ │     │
//	  ├── Stop ──────────────────────────────┴──► gone ── accepted ───────┘     │
//	  │                                             └───────────────────────────┤
//	  └── the last attempt has ended, and none follows ─────────────────────────┴── nothing runs ──► over
//
// Attempts run in every state but over. An attempt is pending, and is sent, only while open: after a backoff, a pushback, a
// wait for a connection, or the end of the attempt that it replaces. Start goes to over immediately if admission or the breaker
// refuses.
type Call struct {
	set     *Settings
	state   state
	ledger  ledger
	used    used
	running []attempt // in the order of sending
	ended   attempt   // the last one that has ended: it holds something until the event is over
	pending pending
	commit  commit        // see Commit
	floor   time.Duration // nothing is sent before, by the server's pushback
	awaited time.Duration // since when the application waits for a response; Never: not yet
	connect time.Duration // the end of the wait for a connection; Never: not begun
	gap     gap
	ending  ending

	endedSlow bool // see EndedSlow

	end     End // once the call is over
	cancels []int
	first   [1]attempt // saves most calls an allocation
}

type state uint8

const (
	over state = iota
	open
	committed // the application has seen part of one attempt
	chosen    // the response is known, and other attempts are cancelled
	gone      // the response is no longer needed
)

// used is what a call has used.
type used struct {
	sent      int  // attempts
	hedges    int  // those that were sent in parallel with others
	progress  int  // those before the one with which a resumed stream has last received a message
	stopped   bool // the server has forbidden further attempts
	forAnswer bool // it has waited for an answer
	announced bool // with Settings.AnnounceOnly: the one extra attempt was announced
	backoff   decision.Backoff
}

// commit is the attempt of which the application has seen a part.
type commit struct {
	attempt int // 0: none
	why     decision.Commit
}

// gap is the time with no attempt running.
type gap struct {
	since time.Duration // Never while one runs
	total time.Duration // before since
}

// end ends the time without attempts.
func (g *gap) end(at time.Duration) {
	if g.since != Never {
		g.total += at - g.since
		g.since = Never
	}
}

// ending is what the end of the call depends on, so far.
type ending struct {
	result          callResult       // the call's, if no attempt follows
	reason          policy.Reason    // why no attempt follows
	lastRefusal     policy.Reason    // why no attempt was sent after a slow one, or when it was due; "": one was
	lastServerError callResult       // before the result, of an attempt that was not cancelled for another one
	reached         bool             // a server has seen one of its attempts
	forbidden       bool             // as in End
	answers         evidence.Summary // of the last decision
	slow            bool             // an attempt took longer than its own timeout
}

// callResult is the result of an attempt as that of its call.
type callResult struct {
	attempt      int // 0: none
	err          error
	contextEnded bool // as in Result
	unsent       bool // the attempt never left this client
	failsOK      bool // as in End
}

// Start asks whether the call may be made, and sends the first attempt. It keeps s until the call is over.
func (c *Call) Start(s *Settings, now Now) (step Step) {
	c.resetCall(s, now.At)
	reason, err := c.ledger.allow(1, now.At, c.timeLeft(now.At))
	if reason != "" {
		c.ending.reason, c.ending.result.err = reason, err
		c.drop(now.At)
		c.beginStep(&step)
		c.completeStep(&step, &now)
		return step
	}
	return c.sendFirst(now.At)
}

// Join is Start for a call whose first attempt was sent before, without a question to a gate.
func (c *Call) Join(s *Settings, at time.Duration) (step Step) {
	c.resetCall(s, at)
	return c.sendFirst(at)
}

func (c *Call) sendFirst(at time.Duration) (step Step) {
	c.used.sent, c.gap.since = 1, Never
	first := c.startAttempt(at)
	c.setSlowAt(first)
	step.Send = 1
	step.Wake, step.Slow = first.slowAt, first.slowAt != Never
	return step
}

// resetCall resets c to a new call.
func (c *Call) resetCall(s *Settings, at time.Duration) {
	*c = Call{cancels: c.cancels[:0]}
	c.state, c.floor, c.connect, c.gap.since = open, at, Never, at
	c.running = c.first[:0]
	c.set, c.ledger.set = s, s
	c.awaited = at
	if s.Kind != Unary {
		c.awaited = Never
	}
}

// Ended reports the end of attempt n. It must be called once for each attempt, including cancelled ones.
func (c *Call) Ended(n int, r Result, now Now) (step Step) {
	c.beginStep(&step)
	if c.removeRunning(n, now.At) {
		c.endAttempt(&step, &c.ended, &r, now)
	}
	c.completeStep(&step, &now)
	return step
}

// removeRunning makes attempt n the one that has ended. It returns false if it does not run.
func (c *Call) removeRunning(n int, at time.Duration) bool {
	i := slices.IndexFunc(c.running, func(a attempt) bool { return a.number == n })
	if i < 0 {
		return false
	}
	c.ended = c.running[i]
	c.running = slices.Delete(c.running, i, i+1)
	if len(c.running) == 0 {
		c.gap.since = at
	}
	return true
}

// endAttempt settles what the attempt that has ended held, and decides what follows.
func (c *Call) endAttempt(step *Step, a *attempt, r *Result, now Now) {
	if r.Origin != decision.Unsent && c.pending.state != disconnected {
		c.connect = Never // there was a connection: the next wait for one is another
	}
	if r.Err != nil && !r.ContextEnded && c.state != chosen && a.cancelled != outrun {
		c.ending.lastServerError = callResult{attempt: a.number, err: r.Err, unsent: r.Origin == decision.Unsent}
	}
	if r.Origin == decision.Unsent {
		c.ledger.spare, a.held.permit = a.held.permit, permit{}
	}
	c.ending.reached = c.ending.reached || r.Seen()
	lost := a.cancelled == outrun || c.state == gone && a.cancelled == replaced && r.ContextEnded
	is := decision.Classify(c.set.Policy, &r.Outcome, now.Wall)
	c.endedSlow = r.Seen() && !c.quiet(a, r, is) && c.outlasted(a, now.At)
	c.ending.slow = c.ending.slow || c.endedSlow
	c.learn(a, r, is, lost, now.At)
	switch {
	case lost:
		c.lost(a, r, now)
	case r.accepted():
		c.accept(step, a, r, now)
	case c.state == gone:
		c.leftover(a, r, now)
	case a.cancelled == replaced && r.ContextEnded:
		c.makeWay(step, a, r, now)
	default:
		c.handleFailure(step, a, r, is, now)
	}
	c.ledger.releaseSpare(now.At)
}

// Wake makes the call check the time and the channel: at Step.Wake, on a change with Step.Watch, or at any time.
func (c *Call) Wake(now Now) (step Step) {
	c.beginStep(&step)
	if c.state == open {
		if c.pending.state == nothing {
			c.slow(&step, now)
		}
		c.launch(&step, now)
	}
	c.completeStep(&step, &now)
	return step
}

// Stop reports that the result of the call is no longer needed: ReasonCancelled, ReasonDeadlineExceeded, or ReasonClosed for
// the connection. Running attempts end by themselves, because their contexts are the call's. The driver checks the context
// before every other event.
func (c *Call) Stop(reason policy.Reason, now Now) (step Step) {
	c.beginStep(&step)
	if c.state == open || c.state == committed {
		c.state = gone
		c.drop(now.At)
		c.ending.reason = reason
		if reason != policy.ReasonClosed || len(c.running) > 0 { // otherwise the caller gets the result of the last attempt
			c.ending.result = callResult{}
		}
	}
	c.completeStep(&step, &now)
	return step
}

// Stopped reports whether Stop has ended the wait for a result, and attempts still run.
func (c *Call) Stopped() bool { return c.state == gone }

// Abort settles everything after a panic of a callback (budget, breaker, observer) or of an inner interceptor, inside an event or between
// two, and ends the call. The driver cancels all attempts.
func (c *Call) Abort(now Now) {
	var step Step
	c.beginStep(&step)
	running := c.running
	c.running, c.pending = nil, pending{}
	defer c.ledger.releaseAll(now.At, &c.ended.held, running)
	c.ending.reached = false // tells the budget nothing: it may have panicked, and the call has no status
	c.ending.result, c.ending.reason, c.ending.lastServerError = callResult{err: ErrPanicked}, policy.ReasonNonRetryable, callResult{}
	c.completeStep(&step, &now)
}

// Running returns how many attempts have not ended.
func (c *Call) Running() int { return len(c.running) }

// Hedge reports whether the running attempt n was sent in parallel with others.
func (c *Call) Hedge(n int) bool {
	a := c.findAttempt(n)
	return a != nil && a.hedge
}

// Over reports whether the call has ended and no attempt runs.
func (c *Call) Over() bool { return c.state == over }

// End returns the result of the call, after the step with Over. It is valid until Start reuses the memory.
func (c *Call) End() *End { return &c.end }

// maxAttempts returns how many attempts the call may make, including the first.
func (c *Call) maxAttempts() int {
	if n := c.set.MaxAttempts; n > 0 {
		return min(n, c.set.Policy.MaxAttempts())
	}
	return c.set.Policy.MaxAttempts()
}

// attempts returns how many of them it has made, since the start or the last progress of a resumed stream.
func (c *Call) attempts() int { return c.used.sent - c.used.progress }

// timeLeft returns the time until the call's deadline, or Never.
func (c *Call) timeLeft(at time.Duration) time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - at
}

// latest returns the last time at which an attempt can be sent before the deadline.
func (c *Call) latest() time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - decision.MinAttemptTime
}
