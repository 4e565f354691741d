// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc"
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
		c := r.begin(ctx, method, cc, with, opts)
		if c == nil {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		if timeout := c.policy.Spec().Timeout; timeout > 0 {
			return c.unaryWithin(timeout, req, reply, invoke)
		}
		return c.unary(req, reply, invoke)
	}
}

func (c *call) unaryWithin(timeout time.Duration, req, reply any, invoke grpc.UnaryInvoker) error {
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	c.ctx = ctx
	return c.unary(req, reply, invoke)
}

// unary sends attempts until one is the answer.
func (c *call) unary(req, reply any, invoke grpc.UnaryInvoker) error {
	ctx, w := c.first()
	for {
		err := invoke(ctx, c.method, req, reply, c.cc, c.opts...)
		if w != nil {
			w.stop()
		}
		if err == nil {
			c.succeed()
			return nil
		}
		if final := c.follow(err, w); final != nil {
			return final
		}
		clearReply(reply)
		ctx, w = c.later()
	}
}
