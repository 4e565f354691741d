// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// startCall tells observers that a call begins, and returns its context.
func (r *Retrier) startCall(ctx context.Context, method string, cc *grpc.ClientConn) context.Context {
	e := CallStartEvent{Method: method, Target: r.targets.canonical(cc)}
	for _, o := range r.observers {
		if o.CallStart != nil {
			ctx = o.CallStart(ctx, e)
		}
	}
	return ctx
}

// notifyAttempt tells observers of attempt a, which has ended.
func (c *call) notifyAttempt(a *attempt, err error, place attempts.Place) {
	if c.retrier.tellsAttempts {
		c.retrier.notifyAttempt(c.ctx, c.attemptEvent(a, err, place))
	}
}

func (c *call) attemptEvent(a *attempt, err error, place attempts.Place) AttemptEvent {
	return AttemptEvent{
		Method: c.method, Target: c.target(), Number: a.number,
		Start: time.Now().Add(a.began - budget.Now()), Elapsed: a.took, Code: status.Code(err), Err: err,
		Peer: a.report().from().Addr, Place: string(place), Hedge: a.hedge, IdempotencyKey: c.key,
	}
}

func (r *Retrier) notifyAttempt(ctx context.Context, e AttemptEvent) {
	for _, o := range r.observers {
		if o.Attempt != nil {
			o.Attempt(ctx, e)
		}
	}
}

// hearsDecisions reports whether anybody is to be told of decisions.
func (r *Retrier) hearsDecisions() bool { return len(r.observers) > 0 || r.decisions.on.Load() }

// notifyDecision tells observers what the engine has decided in a step, if it has: about an attempt that has ended
// with err, or one that is slow. ended is the attempt whose end was the event; nil: none. Then it tells them of an extra
// attempt that the step sends.
func (c *call) notifyDecision(step attempts.Step, ended *attempt, err error) {
	if tell := c.eventsOf(step, ended, err); tell != nil {
		tell()
	}
}

// eventsOf returns what tells observers of a step; nil if there is nothing to tell.
func (c *call) eventsOf(step attempts.Step, ended *attempt, err error) (tell func()) {
	r, ctx := c.retrier, c.ctx
	var decision *DecisionEvent
	if step.Decided > 0 && r.hearsDecisions() {
		e := c.decisionEvent(step, ended, err)
		decision = &e
		if e.Retry && r.tellsSent {
			c.allowed = decision
		}
	}
	var sent *DecisionEvent
	if step.Send > 1 {
		sent, c.allowed = c.allowed, nil
	}
	if decision == nil && sent == nil {
		return nil
	}
	return func() {
		if decision != nil {
			r.notifyDecision(ctx, *decision, err)
		}
		if sent != nil {
			r.notifySent(ctx, *sent)
		}
	}
}

func (c *call) decisionEvent(step attempts.Step, ended *attempt, err error) DecisionEvent {
	d := step.Decision
	e := DecisionEvent{
		Method: c.method, Target: c.target(), Budget: c.policy.Budget(), Attempt: step.Decided,
		Code: status.Code(err), Codes: c.codes, TimedOut: step.TimedOut,
		Retry: d.Retry, Shadow: d.Shadow(), Delay: d.Delay, Reason: d.Reason, Commit: string(d.Commit), Pushback: d.Pushback.Source,
		Mode: c.mode(), StaticMethod: c.options.static(),
	}
	if ended != nil && ended.number == step.Decided {
		e.Peer = ended.report().from().Addr
	}
	if step.TimedOut {
		e.Code = codes.DeadlineExceeded
	} else {
		e.Codes = e.Codes[:max(len(e.Codes)-1, 0)] // the last is Code
	}
	return e
}

func (r *Retrier) notifyDecision(ctx context.Context, e DecisionEvent, err error) {
	r.decisions.add(e, err)
	all := e.Codes
	for _, o := range r.observers {
		if o.Decision != nil {
			e.Codes = slices.Clone(all) // an observer may do with it what it wants
			o.Decision(ctx, e)
		}
	}
}

// notifySent tells observers of an extra attempt that is sent.
func (r *Retrier) notifySent(ctx context.Context, e DecisionEvent) {
	all := e.Codes
	for _, o := range r.observers {
		if o.Sent != nil {
			e.Codes = slices.Clone(all) // as above
			o.Sent(ctx, e)
		}
	}
}

// callEvent is the end of a call.
func (r *Retrier) callEvent(method string, cc *grpc.ClientConn, sent int, start, waited time.Duration, err error, reason policy.Reason) CallEvent {
	elapsed := budget.Now() - start
	return CallEvent{
		Method: method, Target: r.targets.canonical(cc), Attempts: sent,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Waited: waited,
		Code: status.Code(err), Err: err, Reason: reason,
	}
}

// notifyCall tells observers of the end of the call.
func (c *call) notifyCall(end attempts.End, err error) {
	e := c.retrier.callEvent(c.method, c.cc, end.Attempts, c.start, end.Waited, err, end.Reason)
	e.Budget, e.IdempotencyKey, e.StaticMethod = c.policy.Budget(), c.key, c.options.static()
	e.Hedges, e.Retries = end.Hedges, max(end.Attempts-1-end.Hedges, 0)
	e.Decided, e.Mode = end.Reason == c.decided, c.mode()
	if err != nil || end.Attempts > 1 {
		e.Codes = c.codes
	}
	c.retrier.notifyCall(c.ctx, e)
}

// notifySuccess tells of a call whose first attempt has succeeded, in the fast path.
func (r *Retrier) notifySuccess(ctx context.Context, method string, cc *grpc.ClientConn, p *policy.Policy, start time.Duration, a *attemptOptions, o *callOptions) {
	if r.tellsCalls {
		e := r.callEvent(method, cc, 1, start, 0, nil, policy.ReasonSucceeded)
		e.Budget, e.Mode, e.StaticMethod = p.Budget(), o.mode, o.static()
		r.notifyCall(ctx, e)
	}
	o.deliver(a)
	o.finished(nil)
}

// notifyWouldRefuse tells observers that admission would have refused a call in mode ENFORCE.
func (r *Retrier) notifyWouldRefuse(ctx context.Context, method string, cc *grpc.ClientConn, p *policy.Policy, o *callOptions) {
	if o.mode == policy.ModeObserve && r.hearsDecisions() {
		r.notifyDecision(ctx, DecisionEvent{
			Method: method, Target: r.targets.canonical(cc), Budget: p.Budget(), Code: codes.ResourceExhausted,
			Reason: policy.ReasonOverloaded, Mode: o.mode, StaticMethod: o.static(),
		}, nil)
	}
}

// logEnd adds the end of a call that has failed to the log of decisions, if no decision stands there for it.
func (c *call) logEnd(end attempts.End, err error) {
	if err != nil && end.Reason != c.decided {
		c.retrier.decisions.add(DecisionEvent{
			Method: c.method, Target: c.target(), Budget: c.policy.Budget(), Attempt: end.Attempts,
			Code: status.Code(err), Codes: c.codes, Reason: end.Reason, Mode: c.mode(), StaticMethod: c.options.static(),
		}, err)
	}
}

// notifyReload tells observers of a change of the policies.
func (r *Retrier) notifyReload(e ReloadEvent) {
	all := e.Changes
	for _, o := range r.observers {
		if o.Reload != nil {
			e.Changes = slices.Clone(all)
			o.Reload(e)
		}
	}
}

// notifyMode tells observers of a mode that was set, or the default logger if none of them listens: it has to be known who
// has switched retries off.
func (r *Retrier) notifyMode(e ModeEvent) {
	heard := false
	for _, o := range r.observers {
		if o.Mode != nil {
			o.Mode(e)
			heard = true
		}
	}
	if !heard {
		of := cmp.Or(e.To.Service, "all calls")
		slog.LogAttrs(context.Background(), slog.LevelWarn, "stagger: mode set", slog.String("of", of), slog.String("from", e.From.String()), slog.String("to", e.To.String()))
	}
}

// notifyCall tells observers of the end of a call.
func (r *Retrier) notifyCall(ctx context.Context, e CallEvent) {
	all := e.Codes
	for _, o := range r.observers {
		if o.Call != nil {
			e.Codes = slices.Clone(all)
			o.Call(ctx, e)
		}
	}
}
