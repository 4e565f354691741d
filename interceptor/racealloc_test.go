// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/policy"
)

// hedgedClients are clients whose hedges are not fired: by a delay, and by a quantile.
func hedgedClients(tb testing.TB) map[string]grpc.UnaryClientInterceptor {
	tb.Helper()
	slow := func(h *policy.HedgeSpec) { h.Delay, h.Budget = time.Minute, "" }
	follow := func(h *policy.HedgeSpec) {
		h.Delay, h.Quantile = time.Minute, &policy.QuantileSpec{Quantile: 0.95, Min: time.Minute}
	}
	return map[string]grpc.UnaryClientInterceptor{
		"delay":    mustNew(tb, mustSet(tb, hedged(slow))).Unary(),
		"quantile": mustNew(tb, mustSet(tb, hedged(slow, follow))).Unary(),
	}
}

func TestAHedgeThatIsNotFiredAllocatesAtMostThreeTimes(t *testing.T) {
	for name, unary := range hedgedClients(t) {
		ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
		n := testing.AllocsPerRun(1000, func() { _ = unary(ctx, get, nil, reply, nil, answered, opts...) })
		if n > 3+slack {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkHedgeNotFired(b *testing.B) {
	for name, unary := range hedgedClients(b) {
		b.Run(name, func(b *testing.B) {
			ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
			b.ReportAllocs()
			for b.Loop() {
				_ = unary(ctx, get, nil, reply, nil, answered, opts...)
			}
		})
	}
}
