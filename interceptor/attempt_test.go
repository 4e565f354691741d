// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// fill is an inner layer that answers by itself, fills a target, and doesn't call OnFinish.
func fill(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if o, ok := o.(grpc.TrailerCallOption); ok {
			*o.TrailerAddr = metadata.Pairs("secret", "of the first caller")
		}
	}
	return nil
}

// retried returns an inner layer that answers as inner does, but whose every other attempt fails and has ended.
func retried(inner grpc.UnaryInvoker) grpc.UnaryInvoker {
	down := false
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		err := inner(ctx, method, req, reply, cc, opts...)
		down = !down
		if down {
			_, err = finished(ctx, method, req, reply, cc, opts...), status.Error(codes.Unavailable, "down")
		}
		return err
	}
}

// fillAndEnd is fill as it should be: it calls OnFinish.
func fillAndEnd(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
	return errors.Join(fill(ctx, method, req, reply, cc, opts...), finished(ctx, method, req, reply, cc, opts...))
}

// An inner layer may use the options of an attempt that has ended: gRPC then writes to targets that no other call ever gets.
func TestAttempt_OptionsKept(t *testing.T) {
	t.Parallel()
	unary := afterFailure(t)["stagger"]
	for range 100 {
		var kept []grpc.CallOption
		keep := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			kept = opts
			return finished(ctx, method, req, reply, cc, opts...)
		}
		late := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			return errors.Join(fill(ctx, method, req, reply, cc, kept...), finished(ctx, method, req, reply, cc, opts...))
		}
		for _, inner := range [][2]grpc.UnaryInvoker{{keep, late}, {retried(keep), retried(late)}} {
			var first, second metadata.MD
			_ = unary(t.Context(), get, nil, nil, nil, inner[0], grpc.Trailer(&first))
			_ = unary(t.Context(), get, nil, nil, nil, inner[1], grpc.Trailer(&second))
			if first != nil || second != nil {
				t.Fatalf("trailers %v and %v; want none", first, second)
			}
		}
	}
}

// An inner layer answers by itself. Unless it says that the attempt has ended, gRPC may still run in the background, and the
// caller's targets stay empty, with observers and without.
func TestAttempt_AnsweredInside(t *testing.T) {
	quietly(t, config(plain()), func(t *testing.T, s scene, _ *purse) {
		for range 2 {
			for i, inner := range []grpc.UnaryInvoker{fill, retried(fill), fillAndEnd, retried(fillAndEnd)} {
				var trailer metadata.MD
				_ = s.retrier.Unary()(t.Context(), get, nil, nil, s.conn, inner, grpc.Trailer(&trailer))
				if (trailer != nil) != (i > 1) {
					t.Errorf("layer %d: trailer %v", i, trailer)
				}
			}
			s.retrier.AddObserver(s.observer())
		}
	})
}
