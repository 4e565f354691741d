// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/tried"
	"github.com/stagger-go/stagger/policy"
)

// call is one call: of a user, or of a service for a request. It drives the engine in one thread and without contexts. It
// ends attempts that the engine cancels, and the backend goes on with the abandoned work. When a call has ended, the next
// one reuses its memory.
type call struct {
	engine   attempts.Call
	set      attempts.Settings
	link     *link
	parent   *attempt // the request that it is made for; nil for a fleet's call
	client   int
	start    time.Duration
	deadline time.Duration // attempts.Never: none
	running  []*attempt    // in the order in which they were sent
	wakeAt   time.Duration // when the engine runs next
	timer    uint32        // number of the event that wakes the call; others are stale
	life     uint32        // number of calls that have ended in this memory
	stopped  *answer       // the error with which the caller stops the call
	tried    tried.Backends[*backend]
}

// The events of a call.
const (
	callWake     eventKind = iota // the engine runs again
	callDeadline                  // the deadline has passed
)

// handle implements [handler].
func (c *call) handle(kind eventKind, number uint32) {
	switch {
	case kind == callDeadline && number == c.life:
		c.stopCall(policy.ReasonDeadlineExceeded, answerLate)
	case kind == callWake && number == c.timer:
		c.wakeAt = attempts.Never
		c.do(c.engine.Wake(c.now()))
	}
}

// newCall returns a new call of a client, or of a request.
func (l *link) newCall(client int, parent *attempt, before time.Duration) *call {
	c := l.world.freeCall()
	c.link, c.parent, c.client = l, parent, client
	c.start, c.deadline, c.wakeAt, c.stopped = l.world.now, before, attempts.Never, nil
	if l.elsewhere {
		c.tried = tried.Backends[*backend]{}
	}
	for _, limit := range [...]time.Duration{l.spec.Deadline, l.policy.Timeout()} {
		if limit > 0 {
			c.deadline = min(c.deadline, c.start+limit)
		}
	}
	return c
}

// startCall makes the first attempt.
func (c *call) startCall() {
	l := c.link
	c.set = attempts.Settings{
		Policy: l.policy, MaxAttempts: l.maxAttempts, Deadline: c.deadline,
		Outage: attempts.OutageWait{Longest: l.policy.MaxConnectionWait()},
		Safe:   l.safe, InRetry: c.parent != nil && c.parent.number > 1,
		Budget: l.budgets.balanceOf(c.client), Slots: &l.retriers.slots[c.client],
		Method: l.knownMethod(c.client, c.start), Admission: l.gate(c.client), Enforced: true,
	}
	if c.deadline != attempts.Never {
		l.world.after(max(c.deadline-l.world.now, 0), c, callDeadline, c.life)
	}
	c.do(c.engine.Start(&c.set, c.now()))
}

// do carries out a step of the engine. Cancelled attempts end immediately, which leads to further steps.
func (c *call) do(step attempts.Step) {
	if step.Wake != c.wakeAt {
		c.setTimer(step.Wake)
	}
	if step.Send != 0 {
		c.sendAttempt(step.Send)
	}
	for _, n := range slices.Clone(step.Cancel) {
		i := slices.IndexFunc(c.running, func(a *attempt) bool { return a.number == n })
		c.abandonAttempt(c.running[i], answerCancelled)
	}
	if step.Over {
		c.finishCall()
	}
}

// setTimer makes the engine run again at a time. It replaces the previous timer.
func (c *call) setTimer(at time.Duration) {
	c.wakeAt = at
	c.timer++
	if w := c.link.world; at != attempts.Never {
		w.after(at-w.now, c, callWake, c.timer)
	}
}

// sendAttempt makes attempt n.
func (c *call) sendAttempt(n int) {
	a := &attempt{call: c, link: c.link, backend: c.pickBackend(), number: n, client: c.client}
	c.running = append(c.running, a)
	if n > 1 {
		c.link.countExtra(c)
	}
	if c.link.limiter.enter(a) {
		a.depart()
	}
}

// endAttempt reports how an attempt ended.
func (c *call) endAttempt(a *attempt, ans *answer) {
	a.call = nil
	c.link.limiter.leave(a)
	i := slices.Index(c.running, a)
	c.running = slices.Delete(c.running, i, i+1)
	r := attempts.Result{Err: ans.err, ContextEnded: ans.local}
	r.Status, r.Trailer = ans.status, ans.trailer
	c.do(c.engine.Ended(a.number, r, c.now()))
}

// abandonAttempt ends an attempt that the client gives up.
func (c *call) abandonAttempt(a *attempt, why *answer) {
	a.abandon()
	c.endAttempt(a, why)
}

// stopCall ends a call that its caller has given up, and its attempts.
func (c *call) stopCall(reason policy.Reason, why *answer) {
	c.stopped = why
	running := slices.Clone(c.running)
	c.do(c.engine.Stop(reason, c.now()))
	for _, a := range running {
		c.abandonAttempt(a, why)
	}
}

// finishCall reports how the call ended. Afterwards another call may reuse its memory.
func (c *call) finishCall() {
	l, parent, end := c.link, c.parent, *c.engine.End()
	st := status.Convert(end.Err)
	if end.ResultOf == 0 && c.stopped != nil {
		st = c.stopped.status
	}
	l.endCall(c, &end, st.Code() == codes.OK)
	l.world.reuseCall(c)
	if parent == nil {
		return
	}
	parent.gaveUp = parent.gaveUp || end.GaveUp()
	if parent.call != nil {
		parent.callBelowEnded(st)
	}
}

// now returns the time and the chance for the engine.
func (c *call) now() attempts.Now {
	at := c.link.world.now
	return attempts.Now{At: at, Wall: clock(at), Chance: c.link.jitter.Float64()}
}

// clock returns a time of the run as the policy sees it.
func clock(at time.Duration) time.Time { return time.Unix(0, int64(at)) }
