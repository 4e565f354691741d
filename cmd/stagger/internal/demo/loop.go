// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// loop is how retries are often written: every attempt has its own timeout, whatever fails is sent
// again, and nobody counts.
type loop struct {
	initial time.Duration // wait before the first retry, which doubles; 0: none
}

func (l loop) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(l.unary)}
}

func (l loop) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	wait := l.initial
	for n := 1; ; n++ {
		err := within(ctx, attemptTimeout, func(ctx context.Context) error {
			return invoke(ctx, method, req, reply, cc, opts...)
		})
		if n == attempts || !worthAnother(err) || ctx.Err() != nil {
			return err
		}
		if !sleep(ctx, wait) {
			return err
		}
		wait *= 2
	}
}

func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}

func worthAnother(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded:
		return true
	default:
		return false
	}
}

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
