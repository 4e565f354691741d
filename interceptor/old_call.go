// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// call is a call that more than one attempt may be made for: one whose first attempt has failed, or
// may time out, or that observers watch.
type call struct {
	*attempt // the running one

	policy  *policy.Policy
	options callOptions
	wishes  wishes
	retrier *Retrier
	ctx     context.Context //nolint:containedctx // a call lives no longer than its context
	cc      *grpc.ClientConn
	method  string
	alone   bool // gRPC's own retries are known to be off
	gates   gates
	state   policy.Call
	start   time.Duration // on the budgets' clock
	waited  time.Duration // in backoffs
	key     string        // the idempotency key, if the call sends one
	verdict Verdict       // of the classifier, about the attempt that has ended
	over    bool          // it has ended, and nothing is held any more

	answered time.Duration // when a stream brought its first message; 0 for unary calls
}

// prepare makes c, which has its options only, a call that is about to make its first attempt, a, or has just
// made it.
func (c *call) prepare(r *Retrier, method string, cc *grpc.ClientConn, with coexistence, b budget.Budget, start time.Duration, a *attempt) {
	a.number, a.began = 1, start
	c.attempt, c.retrier, c.method, c.cc, c.alone, c.start = a, r, method, cc, with == alone, start
	c.gates.budget, c.gates.slow, c.gates.room = b, budget.KindTimeout, &r.room
	c.state.Attempts, c.state.MaxAttempts = 1, r.maxAttempts
	if c.options.opaque != nil {
		c.state.MaxAttempts = 1
	}
}

// begin is what a call does before its first attempt. It returns the error of a call that is refused.
func (c *call) begin() error {
	c.ctx = c.keyed(c.ctx)
	if find := c.retrier.breaker; find != nil {
		c.gates.breaker = find(target(c.cc), c.method)
	}
	if refused := c.gates.admit(); refused != nil {
		c.gates.budget = budget.Unlimited // a call that is not made earns nothing
		c.state.Attempts = 0
		return c.end(refused, nil, policy.Decision{Reason: policy.ReasonBreakerOpen})
	}
	c.gates.budget.Start(c.start)
	c.gates.equip(c.attempt)
	return nil
}

// limit gives the call its policy's timeout, which counts from its start.
func (c *call) limit() context.CancelFunc {
	timeout := c.policy.Spec().Timeout
	if timeout == 0 {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout-(budget.Now()-c.start))
	c.ctx = ctx
	return cancel
}

// another is an attempt after the first, which is sent now.
func (c *call) another() *attempt {
	a := newAttempt()
	a.number, a.began = c.state.Attempts, budget.Now()
	c.gates.equip(a)
	return a
}

// optionsAgain are the options of an attempt after the first.
func (c *call) optionsAgain(a *attempt) []grpc.CallOption {
	if _, limited := c.ctx.Deadline(); !limited || !c.policy.WaitForReadyOnRetry() {
		return c.options.forAttempt(&a.attemptOptions)
	}
	for _, o := range c.options.caller {
		if _, own := promoted(o).(grpc.FailFastCallOption); own {
			return c.options.forAttempt(&a.attemptOptions)
		}
	}
	return c.options.forAttempt(&a.attemptOptions, grpc.WaitForReady(true))
}

// target is the name of what a connection leads to; "" without one, as in tests that call an
// interceptor directly.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}
