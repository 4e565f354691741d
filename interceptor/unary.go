// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
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
		a := oldAttempts.Get().(*oldAttempt) //nolint:errcheck,forcetypeassert // the pool holds nothing else
		of, p, o, w := r.read(cc, method, opts, &a.attemptOptions)
		if w&disabled != 0 {
			a.release()
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		first := o.forAttempt(&a.attemptOptions)
		b := r.budgetFor(of, p, cc, method)
		start := budget.Now()
		var err error
		if w&fast != 0 && !r.watched {
			// The way of nearly all calls: nothing of them need be remembered.
			b.Start(start)
			if err = invoke(firstAttempt(ctx), method, req, reply, cc, first...); err == nil {
				b.Finish(start, budget.EndAtOnce)
				if o.notify || r.tellsCalls {
					r.notifySuccess(ctx, method, cc, start, &a.attemptOptions, &o)
				}
				a.release()
				return nil
			}
		}
		var (
			c      *oldCall
			beside *race // if attempts may run beside each other
		)
		if p.Races() {
			beside = races.Get().(*race) //nolint:errcheck,forcetypeassert // the pool holds nothing else
			c = &beside.own
		} else {
			c = new(oldCall)
		}
		c.options = o
		c.options.header = true
		c.prepare(r, method, cc, with, b, start, a)
		if p.Hedge() != nil {
			c.gates.slow = budget.KindHedge
		}
		c.ctx, c.policy, c.flags = ctx, p, w
		if err == nil {
			if refused := c.begin(); refused != nil {
				return refused
			}
		}
		if beside != nil {
			return beside.run(first, req, reply, invoke)
		}
		return c.unary(err, first, req, reply, invoke)
	}
}

// unary makes the attempts of a call, or those that follow a first one which has failed with err; opts
// are those of the first one.
func (c *oldCall) unary(err error, opts []grpc.CallOption, req, reply any, invoke grpc.UnaryInvoker) error {
	if err != nil {
		c.catchUp()
	}
	end := c.limit()
	defer func() { end() }()
	var w *watch
	defer func() { c.leave(w) }()
	if err == nil {
		var ctx context.Context
		ctx, w = c.watched(firstAttempt(c.ctx))
		err = invoke(ctx, c.method, req, reply, c.cc, opts...)
		w.stop()
		if err != nil && c.catchUp() {
			end = both(end, c.limit())
		}
	}
	for c.judge(reply, err, w) {
		c.oldAttempt = c.settled()
		if over, final := c.follow(err, w); over {
			return final
		}
		clearReply(reply)
		c.oldAttempt = c.another()
		var ctx context.Context
		ctx, w = c.watched(laterAttempt(c.ctx, c.state.Attempts-1))
		err = invoke(ctx, c.method, req, reply, c.cc, c.optionsAgain(c.oldAttempt)...)
		w.stop()
	}
	c.succeed(PlaceAlone)
	return nil
}

// errLeft is what a breaker is told of an attempt that a panic has cut short.
var errLeft = status.Error(codes.Unknown, "the attempt has panicked")

// leave lets go of what a call holds that a panic has cut short, in an interceptor further in or in an
// observer.
func (c *oldCall) leave(w *watch) {
	if c.over {
		return
	}
	w.stop()
	c.gates.settle(c.oldAttempt, errLeft, false)
	c.gates.giveBack()
	c.gates.budget.Finish(budget.Now(), budget.EndFailed)
}
