// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tunnel is a connection without a remote address.
type tunnel struct{ net.Conn }

// fill is an inner layer that answers by itself, fills a target, and doesn't call OnFinish.
func fill(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if o, ok := o.(grpc.TrailerCallOption); ok {
			*o.TrailerAddr = metadata.Pairs("secret", "of the first caller")
		}
	}
	return nil
}

// second returns an inner layer that answers as inner does, but not to the first attempt, which has ended.
func second(inner grpc.UnaryInvoker) grpc.UnaryInvoker {
	down := false
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		err := inner(ctx, method, req, reply, cc, opts...)
		if down = !down; down {
			_, err = finished(ctx, method, req, reply, cc, opts...), status.Error(codes.Unavailable, "down")
		}
		return err
	}
}

func TestAttempt_Reused(t *testing.T) {
	t.Parallel()
	unary := afterFailure(t)["stagger"]
	for range 100 {
		for _, inner := range [][2]grpc.UnaryInvoker{{fill, answered}, {second(fill), second(answered)}} {
			var first, second metadata.MD
			_ = unary(t.Context(), get, nil, nil, nil, inner[0], grpc.Trailer(&first))
			_ = unary(t.Context(), get, nil, nil, nil, inner[1], grpc.Trailer(&second))
			if first["secret"] == nil || second != nil {
				t.Fatalf("trailers %v and %v; want the first caller's alone", first, second)
			}
		}
	}
}

// An inner layer answers, and gRPC may run for it in the background: what is filled in then reaches nobody, whoever observes.
func TestAttempt_AnsweredInside(t *testing.T) {
	quietly(t, func(t *testing.T, s scene, _ *purse) {
		for range 2 {
			for _, inner := range []grpc.UnaryInvoker{fill, second(fill)} {
				var trailer metadata.MD
				_ = s.retrier.Unary()(t.Context(), get, nil, nil, s.conn, inner, grpc.Trailer(&trailer))
				if trailer != nil {
					t.Errorf("trailer %v", trailer)
				}
			}
			s.retrier.AddObserver(s.observer())
		}
	})
}
