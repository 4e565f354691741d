// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"

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

// An inner interceptor may add options in several goroutines, as one that hedges does.
func TestAttempt_OptionsAppended(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	err := unary(t.Context(), get, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { _ = append(opts, grpc.WaitForReady(true)) })
		}
		wg.Wait()
		return nil
	}, grpc.StaticMethod())
	if err != nil {
		t.Error(err)
	}
}

func TestAttempt_OwnOptions(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		var counts []int
		targets := map[*metadata.MD]bool{}
		_ = unary(t.Context(), get, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			counts = append(counts, len(opts))
			for _, o := range opts {
				if o, ok := o.(grpc.TrailerCallOption); ok {
					targets[o.TrailerAddr] = true
				}
			}
			return status.Error(codes.Unavailable, "")
		}, grpc.StaticMethod())
		// Four of ours and the caller's; from the second on, headers too.
		if fmt.Sprint(counts) != "[5 6 6 6]" || len(targets) != 4 {
			t.Errorf("options %v, %d trailers; want [5 6 6 6] and 4", counts, len(targets))
		}
	})
}
