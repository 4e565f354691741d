// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// tunnel is a connection without a remote address.
type tunnel struct{ net.Conn }

// An inner layer that answers by itself may fill options without calling OnFinish.
func TestAttempt_Reused(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	fill := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		for _, o := range opts {
			if o, ok := o.(grpc.TrailerCallOption); ok {
				*o.TrailerAddr = metadata.Pairs("secret", "of the first caller")
			}
		}
		return nil
	}
	for range 100 {
		var first, second metadata.MD
		_ = unary(t.Context(), get, nil, nil, nil, fill, grpc.Trailer(&first))
		_ = unary(t.Context(), get, nil, nil, nil, answered, grpc.Trailer(&second))
		if first["secret"] == nil || second != nil {
			t.Fatalf("trailers %v and %v; want the first caller's alone", first, second)
		}
	}
}
