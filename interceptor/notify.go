// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// observers are a Retrier's observers, and the events that any of them handles. They are immutable: changes replace them.
type observers struct {
	list                               []*Observer
	starts, attempts, decisions, calls bool
	ofCalls                            bool // one handles an event of calls
}

func newObservers(list []*Observer) *observers {
	all := &observers{list: list}
	for _, o := range list {
		all.starts = all.starts || o.CallStart != nil
		all.attempts = all.attempts || o.Attempt != nil
		all.decisions = all.decisions || o.Decision != nil
		all.calls = all.calls || o.CallEnd != nil
		all.ofCalls = all.ofCalls || o.Wait != nil || o.Sent != nil
	}
	all.ofCalls = all.ofCalls || all.starts || all.attempts || all.decisions || all.calls
	return all
}

// AddObserver makes the Retrier notify o of calls from now on, as [WithObserver] does from the start, until stop is called. For a call that
// runs at either time, o may get only some of the events, without Peer. An event in delivery when stop is called may reach o after stop has
// returned, but no later ones do. Both are safe for concurrent use.
func (r *Retrier) AddObserver(o Observer) (stop func()) {
	own := &o
	r.changeObservers(func(list []*Observer) []*Observer { return append(slices.Clone(list), own) })
	return func() {
		r.changeObservers(func(list []*Observer) []*Observer {
			return slices.DeleteFunc(slices.Clone(list), func(other *Observer) bool { return other == own })
		})
	}
}

func (r *Retrier) changeObservers(change func([]*Observer) []*Observer) {
	for {
		before := r.observers.Load()
		var list []*Observer
		if before != nil { // else the Retrier isn't made
			list = before.list
		}
		if r.observers.CompareAndSwap(before, newObservers(change(list))) {
			return
		}
	}
}

// startCall notifies observers of the start of a call, and returns its context.
func (r *Retrier) startCall(ctx context.Context, e Event) context.Context {
	for _, o := range r.observers.Load().list {
		if o.CallStart != nil {
			ctx = o.CallStart(ctx, e)
		}
	}
	return ctx
}

// event returns the fields that all events of the call have, with the result of the call or of an attempt.
func (c *call) event(attempt int, code codes.Code, err error) Event {
	return Event{
		Method: c.entry.name, Target: c.target(), Budget: c.entry.policy.Budget(), Mode: c.mode(), StaticMethod: c.options.static,
		Attempt: attempt, Code: code, Err: err,
	}
}

// notify passes an event to observers.
func (r *Retrier) notify(ctx context.Context, e Event, told func(*Observer) func(context.Context, Event)) {
	for _, o := range r.observers.Load().list {
		if tell := told(o); tell != nil {
			tell(ctx, e)
		}
	}
}

// deliverNotice passes an event of the call to observers.
func (c *call) deliverNotice(n notice) { c.retrier.notify(c.ctx, *n.event, n.told) }

func tellAttempt(o *Observer) func(context.Context, Event)  { return o.Attempt }
func tellDecision(o *Observer) func(context.Context, Event) { return o.Decision }
func tellWait(o *Observer) func(context.Context, Event)     { return o.Wait }
func tellSent(o *Observer) func(context.Context, Event)     { return o.Sent }

// notifyAttempt notifies observers of the end of attempt a.
func (c *call) notifyAttempt(a *attempt, err error) {
	if c.retrier.observers.Load().attempts {
		c.retrier.notify(c.ctx, c.attemptEvent(a, err), tellAttempt)
	}
}

func (c *call) attemptEvent(a *attempt, err error) Event {
	e := c.event(a.number, status.Code(err), err)
	e.Elapsed, e.Peer, e.SlowAttempt, e.Hedge = a.took, a.report.peer.Addr, a.slow, a.hedge
	return e
}

// notifyDecision notifies observers of the events of a step.
func (c *call) notifyDecision(step *attempts.Step, ended *attempt, err error) {
	for _, n := range c.noticesOf(step, ended, err) {
		c.deliverNotice(n)
	}
}

// noticesOf returns the events of a step: the engine's decision, if there is one, about an attempt that has ended with err, or a
// slow one; then the beginning of a wait for a connection, or an extra attempt that is sent. ended is the attempt whose end was
// the event, or nil.
func (c *call) noticesOf(step *attempts.Step, ended *attempt, err error) (list []notice) {
	if step.Decided > 0 && c.retrier.observers.Load().ofCalls {
		c.decided = step.Decision.Reason
		if step.Decision.Announced() {
			c.decided = policy.ReasonModeOff // of the call, because nothing follows
		}
		e := new(c.decisionEvent(step, ended, err))
		if e.WillRetry {
			c.allowed, c.connecting = e, false
		}
		if !e.WillRetry || !step.Watch {
			list = append(list, notice{e, tellDecision})
		}
	}
	switch {
	case c.allowed == nil:
	case step.Send > 1:
		list = append(list, notice{c.allowed, tellSent})
		c.allowed = nil
	case step.Watch && !c.connecting:
		c.connecting = true
		list = append(list, notice{c.allowed, tellWait})
	}
	return list
}

func (c *call) decisionEvent(step *attempts.Step, ended *attempt, err error) Event {
	e, d := c.event(step.Decided, status.Code(err), err), step.Decision
	e.WillRetry, e.Delay, e.Reason, e.Pushback = d.Retry, d.Delay, d.Reason, d.Pushback.Source
	e.Answers, e.ForAnswer = answersOf(d.Reason, &step.Answers), d.ForAnswer
	if ended != nil && ended.number == step.Decided {
		e.Peer = ended.report.peer.Addr
	}
	if step.TimedOut {
		e.Code, e.Err = codes.DeadlineExceeded, nil
		e.Elapsed = step.Took
		if hook := c.entry.rules.elsewhere; hook != nil { // only the newest attempt is ever found slow
			e.Peer = hook.LastBackend(c.ctx)
		}
	}
	return e
}

// notifyCall notifies observers of the end of the call, and before that of its reason, if no decision had it.
func (c *call) notifyCall(end *attempts.End, err error, outerRetry bool) {
	all := c.retrier.observers.Load()
	undecided := all.decisions && end.Reason != policy.ReasonSucceeded && end.Reason != c.decided
	if !undecided && !all.calls {
		return
	}
	e := CallEnd{
		Method: c.entry.name, Target: c.target(), Budget: c.entry.policy.Budget(), Mode: c.mode(), StaticMethod: c.options.static,
		Attempts: end.Attempts, Code: status.Code(err), Err: err, Reason: end.Reason, Answers: answersOf(end.Reason, &end.Answers),
	}
	if undecided {
		d := c.event(end.Attempts, e.Code, err)
		d.Reason, d.Answers = e.Reason, e.Answers
		c.retrier.notify(c.ctx, d, tellDecision)
	}
	if !all.calls {
		return
	}
	e.Elapsed, e.Waited, e.Hedges = clock.Now()-c.start, end.Waited, end.Hedges
	e.ForAnswer, e.SlowAttempt, e.OuterRetry = end.ForAnswer, end.Slow || c.slowAtOnce, outerRetry
	if c.deciding() {
		e.Peer = c.lastPeer
	}
	for _, o := range all.list {
		if o.CallEnd != nil {
			o.CallEnd(c.ctx, e)
		}
	}
}

// notifyReload notifies observers of a change of the policies.
func (r *Retrier) notifyReload(set *policy.Set, changes []string, err error) {
	for _, o := range r.observers.Load().list {
		if o.Reload != nil {
			o.Reload(set, slices.Clone(changes), err)
		}
	}
}

// notifyMode reports a mode set by hand to observers, or to the default logger if none of them handles it: a switch must
// never go unnoticed.
func (r *Retrier) notifyMode(from, to ModeSwitch) {
	heard := false
	for _, o := range r.observers.Load().list {
		if o.ModeChange != nil {
			o.ModeChange(from, to)
			heard = true
		}
	}
	if !heard {
		of := cmp.Or(to.Service, "all calls")
		slog.LogAttrs(context.Background(), slog.LevelWarn, "stagger: mode set", slog.String("of", of), slog.String("from", string(from.Mode)), slog.String("to", string(to.Mode)), slog.String("by", to.By))
	}
}
