// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// fiftyMethods is a set with a policy and the default budget for each of fifty methods.
func fiftyMethods(tb testing.TB) *policy.Set {
	tb.Helper()
	config := policy.Config{}
	for i := range 50 {
		retry := policy.DefaultRetry()
		config.Methods = append(config.Methods, policy.MethodConfig{
			Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: fmt.Sprintf("Method%02d", i)}},
			Spec:  policy.Spec{Retry: &retry},
		})
	}
	set, err := policy.NewSet(config)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func mustNew(tb testing.TB, set *policy.Set, options ...interceptor.Option) *interceptor.Retrier {
	tb.Helper()
	r, err := interceptor.New(set, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func answered(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

// contenders are the interceptors that the success path is compared on. go-grpc-middleware's retry
// has one policy for all methods and no budget.
func contenders(tb testing.TB) []struct {
	name  string
	unary grpc.UnaryClientInterceptor
} {
	return []struct {
		name  string
		unary grpc.UnaryClientInterceptor
	}{
		{"stagger", mustNew(tb, fiftyMethods(tb)).Unary()},
		{"go-grpc-middleware", retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithCodes(codes.Unavailable))},
	}
}

// BenchmarkSuccess is what a call that succeeds at once pays for the interceptor. Generated clients
// pass grpc.StaticMethod with every call; "bare" is a call without any option.
func BenchmarkSuccess(b *testing.B) {
	const method = "/acme.orders.v1.OrderService/Method25"
	for _, c := range contenders(b) {
		b.Run("generated/"+c.name, func(b *testing.B) {
			ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
			b.ReportAllocs()
			for b.Loop() {
				_ = c.unary(ctx, method, nil, nil, nil, answered, opts...)
			}
		})
		b.Run("bare/"+c.name, func(b *testing.B) {
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_ = c.unary(ctx, method, nil, nil, nil, answered)
			}
		})
	}
}

// BenchmarkSuccessRatio is the same in turns, a thousand calls of each at a time, so that what else the
// machine does falls on both alike. It reports the median of stagger's time over the other's.
func BenchmarkSuccessRatio(b *testing.B) {
	const method = "/acme.orders.v1.OrderService/Method25"
	ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	both := contenders(b)
	thousand := func(unary grpc.UnaryClientInterceptor) float64 {
		began := time.Now()
		for range 1000 {
			_ = unary(ctx, method, nil, nil, nil, answered, opts...)
		}
		return float64(time.Since(began))
	}
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, thousand(both[0].unary)/thousand(both[1].unary))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "stagger/"+both[1].name)
}

func TestSuccessAllocatesNothing(t *testing.T) {
	unary := mustNew(t, fiftyMethods(t)).Unary()
	ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}

// overBufconn is a client of a server in memory, and what one call through it is.
func overBufconn(tb testing.TB, opts ...grpc.DialOption) func() {
	tb.Helper()
	srv := testserver.Start(tb, testserver.NoRecord())
	conn := srv.Dial(tb, opts...)
	req, reply, ctx := &emptypb.Empty{}, &emptypb.Empty{}, context.Background()
	return func() {
		if err := conn.Invoke(ctx, "/acme.orders.v1.OrderService/Method25", req, reply, grpc.StaticMethod()); err != nil {
			tb.Error(err)
		}
	}
}

// BenchmarkBufconn is a call over a real connection in memory, with and without the interceptor.
func BenchmarkBufconn(b *testing.B) {
	for name, opts := range map[string][]grpc.DialOption{
		"stagger": mustNew(b, fiftyMethods(b)).DialOptions(),
		"grpc":    {grpc.WithDisableRetry()},
	} {
		b.Run(name, func(b *testing.B) {
			call := overBufconn(b, opts...)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

func TestOverAConnectionACallAllocatesAtMostTwiceMore(t *testing.T) {
	with := testing.AllocsPerRun(2000, overBufconn(t, mustNew(t, fiftyMethods(t)).DialOptions()...))
	without := testing.AllocsPerRun(2000, overBufconn(t, grpc.WithDisableRetry()))
	if with > without+2 {
		t.Errorf("%v allocations a call with the interceptor, %v without; want at most 2 more", with, without)
	}
}
