// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// observeAttempt tells of an attempt that has ended.
func (c *call) observeAttempt(err error, abandoned bool) {
	if len(c.retrier.observers) == 0 {
		return
	}
	elapsed := budget.Now() - c.began
	e := AttemptEvent{
		Method: c.method, Target: target(c.cc), Number: c.state.Attempts,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Code: status.Code(err), Err: err,
		Peer: c.peer.Addr, Abandoned: abandoned,
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
		Method: c.method, Target: target(c.cc), Attempt: c.state.Attempts,
		Code: out.Status.Code(), TimedOut: out.TimedOut, Decision: d,
	}
	for _, o := range c.retrier.observers {
		if o.Decision != nil {
			o.Decision(c.ctx, e)
		}
	}
}

// observeCall tells of the end of the call.
func (c *call) observeCall(err error, reason policy.Reason) {
	if len(c.retrier.observers) == 0 {
		return
	}
	elapsed := budget.Now() - c.start
	e := CallEvent{
		Method: c.method, Target: target(c.cc), Attempts: c.state.Attempts,
		Start: time.Now().Add(-elapsed), Elapsed: elapsed, Waited: c.waited,
		Code: status.Code(err), Err: err, Reason: reason,
	}
	for _, o := range c.retrier.observers {
		if o.Call != nil {
			o.Call(c.ctx, e)
		}
	}
}
