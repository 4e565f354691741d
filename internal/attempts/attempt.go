// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// attempt is an attempt, from its sending until the event with its end is over.
type attempt struct {
	began      time.Duration
	heardIn    time.Duration // the latency of its first message or its response
	heard      bool
	unmeasured bool // it has waited for a connection: its latency isn't the server's

	number    int
	speed     evidence.Speed // of its answer
	held      held
	hedge     bool // it was sent in parallel with others
	cancelled cancelled

	slowAt      time.Duration // when it is slow; Never: it is not watched, or has already been decided on
	slow        bool          // it was, and was decided on
	unconnected bool          // at its last slowAt, the channel had no connection
}

// cancelled is the reason why an attempt was cancelled. It never changes again.
type cancelled uint8

const (
	notCancelled cancelled = iota
	replaced               // its successor replaces it, but its response still counts
	outrun                 // the call has another response
)

// findAttempt returns attempt n, if it runs.
func (c *Call) findAttempt(n int) *attempt {
	for i := range c.running {
		if a := &c.running[i]; a.number == n {
			return a
		}
	}
	return nil
}

// newestAttempt returns the newest attempt that runs and isn't cancelled, or nil.
func (c *Call) newestAttempt() *attempt {
	for i := len(c.running) - 1; i >= 0; i-- {
		if a := &c.running[i]; a.cancelled == notCancelled {
			return a
		}
	}
	return nil
}

// startAttempt adds the attempt that the driver sends now to those that run. It takes over what the ledger holds for the pending attempt.
func (c *Call) startAttempt(at time.Duration) *attempt {
	c.running = append(c.running, attempt{})
	a := &c.running[len(c.running)-1]
	a.began, a.number, a.slowAt = at, c.used.sent, Never
	c.ledger.movePending(&a.held)
	return a
}

// Commit makes n the only attempt of the call, because the application is about to see part of it. It returns false if n has
// ended, or was cancelled: the driver then reports its end as that of a cancelled context. Heard reports messages separately.
func (c *Call) Commit(n int, why decision.Commit, now Now) (step Step, ok bool) {
	c.beginStep(&step)
	a := c.findAttempt(n)
	ok = a != nil && a.cancelled == notCancelled
	if ok {
		c.commitTo(&step, commit{n, why}, now.At)
	}
	c.completeStep(&step, &now)
	return step, ok
}

func (c *Call) commitTo(step *Step, to commit, at time.Duration) {
	switch c.state {
	case open:
		c.state, c.commit = committed, to
		c.drop(at)
	case gone:
		c.commit = to
		c.ending.result = callResult{} // the application does not see the results of ended attempts
	default:
	}
	c.cancelOthers(step, to.attempt)
}

// accept makes the response of an attempt the call's.
func (c *Call) accept(step *Step, a *attempt, r *Result, now Now) {
	c.choose(step, callResult{attempt: a.number}, policy.ReasonSucceeded, now.At)
	c.ledger.release(&a.held, settlement{unused: r.unused(), helped: r.Seen() && c.inTime(a)}, now.At)
}

// inTime reports whether an attempt was answered within its own timeout, if it has one. In an overload, later answers would pay for
// the next attempts.
func (c *Call) inTime(a *attempt) bool {
	return c.ownTimeout() == 0 || a.speed == evidence.Fast
}

// handleFailure decides what follows a failed attempt.
func (c *Call) handleFailure(step *Step, a *attempt, r *Result, is decision.Class, now Now) {
	helped := r.Err != nil && !r.Again && r.isAnswer(is) && c.inTime(a)
	long := c.ranLong(a, r, now.At)
	c.ledger.release(&a.held, settlement{unused: r.unused(), refunded: long, helped: helped, local: r.LocalError, err: r.judged()}, now.At)
	if r.Resumes {
		c.resume(a, r, now.At)
	}
	followed := c.follows(a)
	if !followed {
		c.drop(now.At) // an earlier decision on a slow attempt no longer applies
	}
	switch {
	case is.Origin == decision.Unsent:
		c.set.Budget.Observe(clock.Time(now.At), budget.EventUnconnected)
	case is.Fails() && !long: // or a throttle would end a quiet stream after a few cuts
		c.reportFailure(now.At)
	}
	d := c.decide(step, a.number, is, followed, long, now)
	c.ending.result, c.ending.reason = callResult{attempt: a.number, err: r.Err, failsOK: r.FailsOK()}, d.Reason
	c.obey(step, d, now)
	switch {
	case d.Retry:
		c.state = open
		c.launch(step, now)
		if step.Send == 0 && c.pending.state == nothing { // refused in the same moment, as in an old outage
			step.Decision = d.Refused(c.ending.reason)
		}
	case d.Reason == policy.ReasonNonRetryable, c.state == committed:
		c.choose(step, c.ending.result, d.Reason, now.At)
	}
}

// LongRun is how long an attempt of a resumed stream runs that is progress, though it may have brought no message: a quiet stream that
// something cuts now and then is no failing one.
const LongRun = 10 * time.Second

// ranLong reports whether an attempt of a resumed stream ran so long before it was cut that this is progress. Silence isn't.
func (c *Call) ranLong(a *attempt, r *Result, at time.Duration) bool {
	return r.Resumes && !r.Silent && r.Seen() && at-a.began >= LongRun
}

// resume lets the policy decide on an attempt that was cut, because the stream can be resumed. If the attempt received a message, or ran
// long, the call has made progress, and the attempt counts as its first. After a long one the backoff also starts anew.
func (c *Call) resume(a *attempt, r *Result, at time.Duration) {
	c.commit = commit{}
	long := c.ranLong(a, r, at)
	if r.Progress || long {
		c.used.progress = c.used.sent - 1
	}
	if long {
		c.used.backoff = decision.Backoff{}
	}
}

// follows reports whether an attempt needs no successor: under a retry policy, a later attempt was sent when it was slow, and
// still runs.
func (c *Call) follows(a *attempt) bool {
	if compiled.Of(c.set.Policy).Hedge != nil {
		return false
	}
	newest := c.newestAttempt()
	return newest != nil && newest.number > a.number
}

// obey applies the server's pushback, whatever was decided, to all attempts of the call.
func (c *Call) obey(step *Step, d decision.Decision, now Now) {
	switch push := d.Pushback; {
	case push.Source == "":
	case decision.Forbids(c.set.Policy, push):
		c.used.stopped = true
		c.ending.forbidden = c.ending.forbidden || push.Stop
		if !push.Stop { // the delay is too long for the call, and not for its caller
			c.floor = max(c.floor, later(now.At, push.After(now.Chance)))
		}
		c.drop(now.At)
	default:
		c.floor = max(c.floor, later(now.At, push.After(now.Chance)))
		c.launch(step, now) // the pending attempt waits for it, if it may
	}
}

// makeWay sends the successor of a slow attempt that was cancelled for it, and has ended.
func (c *Call) makeWay(step *Step, a *attempt, r *Result, now Now) {
	if c.pending.state == replacing {
		c.pending.state = waiting
	}
	if r.Seen() {
		c.reportFailure(now.At)
	}
	c.ledger.release(&a.held, settlement{unused: r.unused(), local: r.LocalError, err: errTimedOut}, now.At)
	c.ending.result = callResult{attempt: a.number, err: errTimedOut}
	c.launch(step, now)
}

// lost records the end of an attempt after another one has won.
func (c *Call) lost(a *attempt, r *Result, now Now) {
	err := r.judged()
	if r.ContextEnded {
		switch {
		case c.reportHung(a, r, now.At):
			err = errTimedOut
		case c.state != gone && r.Seen():
			err = nil // it was fast enough until it was cancelled
		}
	}
	c.ledger.release(&a.held, settlement{unused: r.unused(), local: r.LocalError, err: err}, now.At)
}

// leftover records the end of an attempt after the call was stopped. A server's result replaces that of a cancelled context.
func (c *Call) leftover(a *attempt, r *Result, now Now) {
	err := r.judged()
	if c.reportHung(a, r, now.At) {
		err = errTimedOut
	}
	c.ledger.release(&a.held, settlement{unused: r.unused(), local: r.LocalError, err: err}, now.At)
	if c.ending.result.attempt == 0 || c.ending.result.contextEnded || !r.ContextEnded {
		c.ending.result = callResult{attempt: a.number, err: r.Err, contextEnded: r.ContextEnded, failsOK: r.FailsOK()}
	}
}

// reportHung reports whether an attempt exceeded its timeout and was then cancelled without a response. It reports the failure to the
// budget, whatever has ended the attempt: a hanging server must not look healthy.
func (c *Call) reportHung(a *attempt, r *Result, at time.Duration) bool {
	if !r.ContextEnded || !a.slow || compiled.Of(c.set.Policy).Hedge != nil {
		return false
	}
	if r.Seen() {
		c.reportFailure(at)
	}
	return true
}

// choose makes the result of an attempt that has ended the call's: nothing else is sent, and running attempts are cancelled.
func (c *Call) choose(step *Step, is callResult, reason policy.Reason, at time.Duration) {
	c.drop(at)
	c.state = chosen
	c.ending.result, c.ending.reason = is, reason
	c.cancelOthers(step, is.attempt)
}

func (c *Call) cancelOthers(step *Step, n int) {
	for i := range c.running {
		if a := &c.running[i]; a.number != n && a.cancelled == notCancelled {
			a.cancelled = outrun
			step.Cancel = append(step.Cancel, a.number)
		}
	}
}
