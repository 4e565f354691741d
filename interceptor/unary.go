// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// coexistence is whether gRPC may retry beside us.
type coexistence bool

const (
	alone      coexistence = true  // grpc.WithDisableRetry is set
	besideGRPC coexistence = false // nobody knows
)

func (r *Retrier) unary(with coexistence) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		a := attempts.Get().(*attempt) //nolint:errcheck,forcetypeassert // the pool holds nothing else
		p, ours, w := r.read(method, opts, a)
		if w&pass != 0 {
			a.release(ours)
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		b := r.payer(p, cc, method)
		start := budget.Now()
		b.Start(start)
		var err error
		if w&plain != 0 && len(r.observers) == 0 {
			err = invoke(firstAttempt(ctx), method, req, reply, cc, ours...)
			if err == nil {
				// The way of nearly all calls. Nothing of it need be remembered, and its start is
				// time enough for a budget to end it by.
				b.Finish(start, true)
				if w&told != 0 {
					a.deliver(opts, nil)
				}
				a.release(ours)
				return nil
			}
		}
		c := &call{
			attempt: a, policy: p, caller: opts, opts: ours, wishes: w, retrier: r, ctx: ctx, cc: cc, method: method, alone: with == alone,
			account: account{budget: b}, state: policy.Call{Attempts: 1, MaxAttempts: r.maxAttempts}, start: start, began: start,
		}
		return c.unary(err, req, reply, invoke)
	}
}

// unary makes the attempts of a call, or those that follow a first one which has failed with err.
func (c *call) unary(err error, req, reply any, invoke grpc.UnaryInvoker) error {
	if timeout := c.policy.Spec().Timeout; timeout > 0 {
		ctx, cancel := context.WithTimeout(c.ctx, timeout)
		defer cancel()
		c.ctx = ctx
	}
	var w *watch
	if err == nil {
		var ctx context.Context
		ctx, w = c.watched(firstAttempt(c.ctx))
		err = invoke(ctx, c.method, req, reply, c.cc, c.opts...)
		w.stop()
	}
	for err != nil {
		if final := c.follow(err, w); final != nil {
			return final
		}
		clearReply(reply)
		var ctx context.Context
		ctx, w = c.later()
		err = invoke(ctx, c.method, req, reply, c.cc, c.opts...)
		w.stop()
	}
	c.succeed()
	return nil
}
