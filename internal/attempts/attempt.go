// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// attempt is one that runs, and what it holds until it has ended.
type attempt struct {
	number    int
	began     time.Duration
	slowAt    time.Duration // when it is slow; Never: nobody asks, or everybody was asked
	paused    time.Duration // how much of its time no call of the application has waited
	heardIn   time.Duration // after which time, less the pauses, its first message came, or its answer
	permit    permit
	done      func(error) // of the breaker
	cancelled cancelled
	heard     bool
	counted   bool // by admission, as one that runs
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

// permit is a permit that may be there.
type permit struct {
	budget.Permit

	held bool
}

// add adds the next attempt.
func (c *Call) add(step *Step, paid permit, done func(error), at time.Duration) {
	c.sent++
	a := attempt{
		number: c.sent, began: at, slowAt: Never, permit: paid, done: done,
		counted: c.set.Admission != nil,
		hedge:   c.pending.decision.Reason == policy.ReasonHedge,
	}
	if a.counted && c.sent > 1 {
		c.set.Admission.Add()
	}
	if a.hedge {
		c.end.Hedges++
	}
	for i := range c.running {
		if other := &c.running[i]; other.cancelled == no {
			other.beside, a.beside = true, true
		}
	}
	if c.idle != Never {
		c.end.Waited += at - c.idle
		c.idle = Never
	}
	c.let = ""
	c.running = append(c.running, a)
	c.state.Sent(c.pending.decision)
	c.pending = pending{}
	step.Send = c.sent
}

// arm sets when an attempt is slow, if that could lead to anything.
func (c *Call) arm(a *attempt) {
	after, watched := c.slowAfter()
	slowAt := later(a.began, later(a.paused, after))
	if watched && !c.exhausted() && slowAt < c.set.Deadline {
		a.slowAt = slowAt
	}
}

// slowAfter is the time after which an attempt is slow.
func (c *Call) slowAfter() (after time.Duration, watched bool) {
	p := c.set.Policy
	if h := p.Hedge(); h != nil {
		return c.hedgeAfter(h), !c.set.Alone
	}
	return p.PerAttemptTimeout(), p.PerAttemptTimeout() > 0
}

// hedgeAfter is the delay of the next hedge: the quantile of the latencies within its bounds, if that is known.
func (c *Call) hedgeAfter(h *policy.HedgeSpec) time.Duration {
	q := h.Quantile
	if q == nil || c.set.Latency == nil || c.set.Latency.Quantile() == 0 {
		return h.Delay
	}
	after := max(c.set.Latency.Quantile(), q.Min)
	if q.Max > 0 {
		after = min(after, q.Max)
	}
	return after
}

func (c *Call) exhausted() bool {
	most := c.set.Policy.MaxAttempts()
	if c.set.MaxAttempts > 0 {
		most = min(most, c.set.MaxAttempts)
	}
	return c.state.Attempts >= most
}

// accept takes the answer of an attempt for the call's.
func (c *Call) accept(step *Step, a *attempt, now Now) {
	step.Place = a.place(PlaceWon)
	c.hear(a, now.At)
	c.choose(step, a.number, nil, policy.ReasonSucceeded, now.At)
	c.settle(a, nil, !c.late(a), now.At)
}

// late reports whether an attempt was answered later than it should have been. Such an answer is no sign that
// extra attempts help: in an overload, it would pay for the next ones and deepen it.
func (c *Call) late(a *attempt) bool {
	timeout := c.set.Policy.PerAttemptTimeout()
	return timeout > 0 && a.heardIn > timeout
}

// failed decides what follows an attempt that has failed.
func (c *Call) failed(step *Step, a *attempt, r *Result, now Now) {
	step.Place = a.place(PlaceLost)
	c.settle(a, r.Err, false, now.At)
	out := r.Outcome
	if out.Resumes {
		c.resume(a, r, now.At)
	}
	if c.state.Followed = c.follows(a); !c.state.Followed {
		c.drop(now.At) // what was decided about a slow attempt does not hold any more
	}
	d := c.decide(step, a.number, &out, now)
	c.state.Followed = false
	c.end.Answer, c.end.Err, c.end.Reason, c.end.Commit = a.number, r.Err, d.Reason, d.Commit
	c.obey(d, now)
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
	c.state.Committed = policy.CommitNone
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
func (c *Call) obey(d policy.Decision, now Now) {
	switch push := d.Pushback; {
	case push.Source == "":
	case c.set.Policy.Forbids(push):
		c.state.Stopped = true
		c.drop(now.At)
	case d.Retry:
		c.floor = max(c.floor, later(now.At, d.Delay))
	default:
		c.floor = max(c.floor, later(now.At, push.After(now.Chance)))
		if c.pending.decided {
			c.postpone(now)
		}
	}
}

// makeWay sends the successor of a slow attempt that has ended for it.
func (c *Call) makeWay(step *Step, a *attempt, now Now) {
	step.Place = PlaceAbandoned
	c.pending.replaces = 0
	c.set.Budget.Fail(now.At)
	c.settle(a, errTimedOut, false, now.At)
	c.end.Answer, c.end.Err = a.number, errTimedOut
	c.launch(step, now)
}

// lost notes the end of an attempt that another has won over.
func (c *Call) lost(step *Step, a *attempt, r *Result, now Now) {
	if !r.Local {
		step.Place = a.place(PlaceLost)
		if r.Err == nil {
			c.hear(a, now.At)
		}
		c.settle(a, r.Err, false, now.At)
		return
	}
	step.Place = PlaceCancelled
	if a.slow { // how long a younger one took so far says nothing
		c.hear(a, now.At)
	}
	var err error // it was fast enough, as far as it got
	switch {
	case c.hung(a, r, now.At):
		err = errTimedOut
	case c.phase == gone:
		err = r.Err
	}
	c.settle(a, err, false, now.At)
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
	c.settle(a, err, false, now.At)
	if c.end.Answer == 0 || c.local || !r.Local {
		c.end.Answer, c.end.Err, c.local = a.number, r.Err, r.Local
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

// panicked ends the call with the attempt that has panicked, the first if there are more.
func (c *Call) panicked(step *Step, a *attempt, now Now) {
	step.Place = a.place(PlaceLost)
	c.choose(step, a.number, errPanicked, policy.ReasonNonRetryable, now.At)
	c.end.Panicked = true
	c.settle(a, errPanicked, false, now.At)
}

// choose makes an attempt that has ended the call's answer: nothing is sent any more, and what runs is
// cancelled.
func (c *Call) choose(step *Step, n int, err error, reason policy.Reason, at time.Duration) {
	c.drop(at)
	c.phase = answered
	if !c.end.Panicked {
		c.end.Answer, c.end.Err, c.end.Reason = n, err, reason
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

// settle tells the budget, if that paid for the attempt, whether it helped, and the breaker how it ended.
func (c *Call) settle(a *attempt, err error, helped bool, at time.Duration) {
	if done := a.done; done != nil {
		a.done = nil
		defer done(err)
	}
	if p := a.permit; p.held {
		a.permit = permit{}
		c.set.Budget.Settle(at, p.Permit, helped)
	}
}

// settleShadow tells the budget how the call went for which an attempt would have been sent: whether that would have
// helped is not known.
func (c *Call) settleShadow(helped bool, at time.Duration) {
	if p := c.shadow; p.held {
		c.shadow = permit{}
		c.set.Budget.Settle(at, p.Permit, helped)
	}
}

// unspend returns the permit of an attempt that no server sees.
func (c *Call) unspend(p *permit, at time.Duration) {
	if p.held {
		unused := p.Permit
		*p = permit{}
		c.set.Budget.Return(at, unused)
	}
}
