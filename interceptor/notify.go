// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// observeAttempt tells of an attempt that has ended.
func (c *call) observeAttempt(err error, place Place) {
	if !c.retrier.tellsAttempts {
		return
	}
	elapsed := budget.Now() - c.began
	e := AttemptEvent{
		Method: c.method, Target: target(c.cc), Number: c.number,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Code: status.Code(err), Err: err,
		Peer: c.from().Addr, Place: place, IdempotencyKey: c.key,
	}
	for _, o := range c.retrier.observers {
		if o.Attempt != nil {
			o.Attempt(c.ctx, e)
		}
	}
}

// observeDecision tells what follows an attempt that has failed or timed out.
func (c *call) observeDecision(out *policy.Outcome, d policy.Decision) {
	e := DecisionEvent{
		Method: c.method, Target: target(c.cc), Attempt: c.number,
		Code: out.Status.Code(), TimedOut: out.TimedOut, Decision: d,
	}
	for _, o := range c.retrier.observers {
		if o.Decision != nil {
			o.Decision(c.ctx, e)
		}
	}
}

// callEvent is the end of a call.
func (c *call) callEvent(err error, reason policy.Reason) CallEvent {
	e := callEvent(c.method, c.cc, c.state.Attempts, c.start, c.waited, err, reason)
	e.IdempotencyKey = c.key
	return e
}

func callEvent(method string, cc *grpc.ClientConn, attempts int, start, waited time.Duration, err error, reason policy.Reason) CallEvent {
	elapsed := budget.Now() - start
	return CallEvent{
		Method: method, Target: target(cc), Attempts: attempts,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Waited: waited,
		Code: status.Code(err), Err: err, Reason: reason,
	}
}

// tellSuccess tells of a call whose first attempt has succeeded.
func (r *Retrier) tellSuccess(ctx context.Context, method string, cc *grpc.ClientConn, start time.Duration, a *attempt, o *callOptions) {
	if r.tellsCalls {
		r.tellCall(ctx, callEvent(method, cc, 1, start, 0, nil, policy.ReasonSucceeded))
	}
	o.deliver(&a.attemptOptions, nil)
}

// tellCall tells of the end of a call.
func (r *Retrier) tellCall(ctx context.Context, e CallEvent) {
	for _, o := range r.observers {
		if o.Call != nil {
			o.Call(ctx, e)
		}
	}
}
