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

// An inner layer that answers by itself may fill options without calling OnFinish.
func TestAttempt_Reused(t *testing.T) {
	t.Parallel()
	unary, down := afterFailure(t)["stagger"], false
	fill := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		for _, o := range opts {
			if o, ok := o.(grpc.TrailerCallOption); ok {
				*o.TrailerAddr = metadata.Pairs("secret", "of the first caller")
			}
		}
		return nil
	}
	// once returns an inner layer whose first attempt fails, and whose second doesn't. Both have ended.
	once := func(inner grpc.UnaryInvoker) grpc.UnaryInvoker {
		return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			_, _ = inner(ctx, method, req, reply, cc, opts...), finished(ctx, method, req, reply, cc, opts...)
			if down = !down; down {
				return status.Error(codes.Unavailable, "down")
			}
			return nil
		}
	}
	for range 100 {
		for _, inner := range [][2]grpc.UnaryInvoker{{fill, answered}, {once(fill), once(answered)}} {
			var first, second metadata.MD
			_ = unary(t.Context(), get, nil, nil, nil, inner[0], grpc.Trailer(&first))
			_ = unary(t.Context(), get, nil, nil, nil, inner[1], grpc.Trailer(&second))
			if first["secret"] == nil || second != nil {
				t.Fatalf("trailers %v and %v; want the first caller's alone", first, second)
			}
		}
	}
}
