// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// call is one call on its way through its attempts. A call whose first attempt succeeds is used
// again, so that success allocates nothing.
type call struct {
	// Set by begin.
	retrier *Retrier
	ctx     context.Context //nolint:containedctx // a call lives no longer than its context
	cc      *grpc.ClientConn
	method  string
	policy  *policy.Policy
	start   time.Duration     // on the budgets' clock
	caller  []grpc.CallOption // as the caller gave them
	opts    []grpc.CallOption // as an attempt gets them; room for them is in array
	safe    bool              // by call option
	told    bool              // caller has options that are told of the call's end
	headers bool              // attempts bring their headers
	alone   bool              // gRPC's own retries are known to be off
	account account
	state   policy.Call

	// Touched only when the policy is asked; such a call is not used again.
	asked  bool
	began  time.Duration // of the running attempt, from the second on
	waited time.Duration // in backoffs

	// Used again as they are.
	attempt attempt
	array   [own + 12]grpc.CallOption
}

var calls = sync.Pool{New: func() any {
	c := new(call)
	c.attempt.options(&c.array)
	return c
}}

// begin sets up a call, or returns nil for one that is to pass by.
func (r *Retrier) begin(ctx context.Context, method string, cc *grpc.ClientConn, with coexistence, opts []grpc.CallOption) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool holds nothing else
	c.retrier, c.ctx, c.cc, c.method, c.caller = r, ctx, cc, method, opts
	c.safe, c.told, c.headers, c.alone = false, false, false, with == alone
	c.policy = r.set.Lookup(method)
	c.opts = c.array[:own]
	if !c.readOptions() {
		c.release()
		return nil
	}
	c.state.MaxAttempts = r.maxAttempts
	c.start = budget.Now()
	c.openAccount()
	return c
}

func (c *call) openAccount() {
	b, known := c.retrier.budgets.find(c.policy, c.target(), c.method)
	if !known {
		c.retrier.warnUnknownBudget(c.policy.Budget())
	}
	c.account.budget = b
	b.Start(c.start)
}

// target is the name of what the connection leads to; "" without a connection, as in tests that
// call an interceptor directly.
func (c *call) target() string {
	if c.cc == nil {
		return ""
	}
	return c.cc.Target()
}

// release makes the memory of a call available again. Only for a call whose one attempt has
// succeeded without the policy being asked, or that never began: an attempt that failed may have
// left something behind that still writes to it.
func (c *call) release() {
	clear(c.opts[own:])
	c.attempt.reset()
	c.retrier, c.ctx, c.cc, c.policy, c.caller, c.account.budget = nil, nil, nil, nil, nil, nil
	calls.Put(c)
}
