// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// attempt is one that runs.
type attempt struct {
	number    int
	began     time.Duration
	slowAt    time.Duration // when it is slow; Never: nobody asks, or everybody was asked
	paused    time.Duration // how much of its time no call of the application has waited
	asked     time.Duration // when the server had its request; Never: not yet
	idle      time.Duration // how much of the time since then no call of the application has waited
	heardIn   time.Duration // after which time, less the pauses, its first message came, or its answer
	held      held
	cancelled cancelled
	heard     bool
	committed bool // the call is committed to it
	hedge     bool // it was sent beside others
	slow      bool // it took longer than its timeout or the hedging delay
	beside    bool // another ran beside it
	dropped   bool // it brought something too late to be shown
}

// cancelled is why an attempt was cancelled.
type cancelled uint8

const (
	no       cancelled = iota
	replaced           // it makes way for its successor, but its answer still counts
	outrun             // the call has another answer
)

// find returns attempt n, if it runs.
func (c *Call) find(n int) *attempt {
	for i := range c.running {
		if a := &c.running[i]; a.number == n {
			return a
		}
	}
	return nil
}

// accept takes the answer of an attempt for the call's.
func (c *Call) accept(step *Step, a *attempt, now Now) {
	step.Place = a.place(PlaceWon)
	c.choose(step, a.number, nil, policy.ReasonSucceeded, now.At)
	c.ledger.release(&a.held, outcome{helped: !c.late(a, now.At)}, now.At)
}

// failed decides what follows an attempt that has failed.
func (c *Call) failed(step *Step, a *attempt, r *Result, is decision.Class, now Now) {
	step.Place = a.place(PlaceLost)
	c.ledger.release(&a.held, outcome{err: r.Err}, now.At)
	if r.Resumes {
		c.resume(a, r, now.At)
	}
	if c.state.Followed = c.follows(a); !c.state.Followed {
		c.drop(now.At) // what was decided about a slow attempt does not hold any more
	}
	d := c.decide(step, a.number, is, now)
	c.state.Followed = false
	c.answer, c.reason, c.commit = answer{attempt: a.number, err: r.Err}, d.Reason, d.Commit
	c.obey(step, d, now)
	switch {
	case d.Retry:
		c.phase = open
		c.schedule(d, now)
		c.launch(step, now)
	case d.Reason == policy.ReasonNonRetryable, c.phase == committed:
		c.choose(step, a.number, r.Err, d.Reason, now.At)
	}
}

// resume lets the policy decide on an attempt that was cut, since the rest can be asked for. One that has
// brought a message is progress.
func (c *Call) resume(a *attempt, r *Result, at time.Duration) {
	c.state.Committed = decision.CommitNone
	if r.Progress {
		c.state.Progress(at-a.began > c.set.Policy.Backoff().Max)
	}
}

// follows reports whether an attempt needs no successor: by a retry policy one was sent when it was slow, and
// still runs.
func (c *Call) follows(a *attempt) bool {
	if c.set.Policy.Hedge() != nil {
		return false
	}
	newest := c.newest()
	return newest != nil && newest.number > a.number
}

// obey keeps the server's word, whatever was decided: it holds for all attempts of the call.
func (c *Call) obey(step *Step, d decision.Decision, now Now) {
	switch push := d.Pushback; {
	case push.Source == "":
	case c.set.Policy.Forbids(push):
		c.state.Stopped, c.stopped = true, c.stopped || push.Stop
		c.floor = max(c.floor, later(now.At, push.After(now.Chance)))
		c.drop(now.At)
	case d.Retry:
		c.floor = max(c.floor, later(now.At, d.Delay))
	default:
		if c.floor = max(c.floor, later(now.At, push.After(now.Chance))); c.floor > now.At {
			c.launch(step, now) // what is pending waits for it, if it may
		}
	}
}

// makeWay sends the successor of a slow attempt that has ended for it.
func (c *Call) makeWay(step *Step, a *attempt, now Now) {
	step.Place = PlaceAbandoned
	c.pending.replaces = 0
	c.set.Budget.Fail(now.At)
	c.ledger.release(&a.held, outcome{err: errTimedOut}, now.At)
	c.answer = answer{attempt: a.number, err: errTimedOut}
	c.launch(step, now)
}

// lost notes the end of an attempt that another has won over.
func (c *Call) lost(step *Step, a *attempt, r *Result, now Now) {
	step.Place = a.place(PlaceLost)
	err := r.Err
	if r.Local {
		step.Place = PlaceCancelled
		switch {
		case c.hung(a, r, now.At):
			err = errTimedOut
		case c.phase != gone:
			err = nil // it was fast enough, as far as it got
		}
	}
	c.ledger.release(&a.held, outcome{err: err}, now.At)
}

// leftover notes the end of an attempt after that of its caller. What a server said beats what became of a
// context.
func (c *Call) leftover(step *Step, a *attempt, r *Result, now Now) {
	step.Place = a.place(PlaceLost)
	if r.Local {
		step.Place = a.place(PlaceCancelled)
	}
	err := r.Err
	if c.hung(a, r, now.At) {
		err = errTimedOut
	}
	c.ledger.release(&a.held, outcome{err: err}, now.At)
	if c.answer.attempt == 0 || c.answer.local || !r.Local {
		c.answer = answer{attempt: a.number, err: r.Err, local: r.Local}
	}
}

// hung reports whether an attempt was slower than its timeout and then cut short, without an answer. The budget
// hears of the failure, whatever has ended the attempt: a server that hangs must not look like one that is well.
func (c *Call) hung(a *attempt, r *Result, at time.Duration) bool {
	if !r.Local || !a.slow || c.set.Policy.Hedge() != nil {
		return false
	}
	c.set.Budget.Fail(at)
	return true
}

// panicked ends the call with the attempt that has panicked, the first if there are more; 0: none.
func (c *Call) panicked(step *Step, n int, at time.Duration) {
	c.choose(step, n, errPanicked, policy.ReasonNonRetryable, at)
	c.panics = true
}

// choose makes an attempt that has ended the call's answer: nothing is sent any more, and what runs is
// cancelled.
func (c *Call) choose(step *Step, n int, err error, reason policy.Reason, at time.Duration) {
	c.drop(at)
	c.phase = answered
	if !c.panics {
		c.answer, c.reason = answer{attempt: n, err: err}, reason
	}
	c.cancelOthers(step, n)
}

func (c *Call) cancelOthers(step *Step, n int) {
	for i := range c.running {
		if a := &c.running[i]; a.number != n && a.cancelled == no {
			a.cancelled = outrun
			step.Cancel = append(step.Cancel, a.number)
		}
	}
}

// place is how the attempt came out, if others ran beside it.
func (a *attempt) place(p Place) Place {
	if !a.beside {
		return PlaceAlone
	}
	return p
}
