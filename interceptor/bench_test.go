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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
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

// BenchmarkSuccessRatio is the same in turns. It reports the median of stagger's time over the other's.
func BenchmarkSuccessRatio(b *testing.B) {
	ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	both := contenders(b)
	call := func(unary grpc.UnaryClientInterceptor) func() {
		return func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	}
	inTurns(b, call(both[0].unary), call(both[1].unary))
}

// inTurns reports the median of one time over another. They are taken in turns, of a thousand calls each, so that what
// else the machine does falls on both alike.
func inTurns(b *testing.B, ours, theirs func()) {
	b.Helper()
	thousand := func(call func()) float64 {
		began := time.Now()
		for range 1000 {
			call()
		}
		return float64(time.Since(began))
	}
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, thousand(ours)/thousand(theirs))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "stagger/go-grpc-middleware")
}

func TestSuccessAllocatesNothing(t *testing.T) {
	unary := mustNew(t, fiftyMethods(t)).Unary()
	ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}

// afterFailure are the interceptors that the failure path is compared on: both wait for a nanosecond before a retry.
func afterFailure(tb testing.TB) map[string]grpc.UnaryClientInterceptor {
	tb.Helper()
	again := plain()
	again.Backoff, again.Budget = policy.Backoff{Initial: 1, Max: 1, Multiplier: 1, Jitter: policy.JitterNone}, "all"
	c := config(again)
	ratio := budget.DefaultRatio()
	ratio.Percent, ratio.MinPerSecond = 100, 1e6
	c.Budgets = []policy.BudgetSpec{{Name: "all", Config: ratio}}
	return map[string]grpc.UnaryClientInterceptor{
		"stagger": mustNew(tb, mustSet(tb, c)).Unary(),
		"go-grpc-middleware": retry.UnaryClientInterceptor(retry.WithMax(4), retry.WithCodes(codes.Unavailable),
			retry.WithBackoff(retry.BackoffLinear(1))),
	}
}

// failOnce is a call whose first attempt fails.
func failOnce(unary grpc.UnaryClientInterceptor) func() {
	ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
	n, down := 0, status.Error(codes.Unavailable, "down")
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		if n++; n%2 == 1 {
			return down
		}
		return nil
	}
	return func() { _ = unary(ctx, get, nil, reply, nil, invoke, opts...) }
}

// BenchmarkOneFailure is what a call pays for the interceptor whose first attempt fails.
func BenchmarkOneFailure(b *testing.B) {
	for name, unary := range afterFailure(b) {
		b.Run(name, func(b *testing.B) {
			call := failOnce(unary)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkOneFailureRatio is the same in turns.
func BenchmarkOneFailureRatio(b *testing.B) {
	both := afterFailure(b)
	inTurns(b, failOnce(both["stagger"]), failOnce(both["go-grpc-middleware"]))
}

func TestOneFailureAllocatesLittle(t *testing.T) {
	allocations := map[string]float64{}
	for name, unary := range afterFailure(t) {
		allocations[name] = testing.AllocsPerRun(2000, failOnce(unary))
	}
	if ours, theirs := allocations["stagger"], allocations["go-grpc-middleware"]; ours > theirs+4+slack {
		t.Errorf("%v allocations, %v with go-grpc-middleware; want at most 4 more", ours, theirs)
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

func TestConnectionAllocatesLittle(t *testing.T) {
	with := testing.AllocsPerRun(2000, overBufconn(t, mustNew(t, fiftyMethods(t)).DialOptions()...))
	without := testing.AllocsPerRun(2000, overBufconn(t, grpc.WithDisableRetry()))
	if with > without+2 {
		t.Errorf("%v allocations a call with the interceptor, %v without; want at most 2 more", with, without)
	}
}
