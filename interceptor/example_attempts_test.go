// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// An observer learns of each decision, and of each call's end. For logs, take package observe, and for metrics, otelstagger.
func ExampleWithObserver() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent:  []string{getOrder},
		RetryPolicy: policy.RetryPolicy{InitialBackoff: time.Millisecond, Jitter: "NONE"},
	}, interceptor.WithObserver(interceptor.Observer{
		Decision: func(_ context.Context, e interceptor.Event) {
			fmt.Printf("attempt %d: %v: %s in %v\n", e.Attempt, e.Code, e.Reason, e.Delay)
		},
		CallEnd: func(_ context.Context, e interceptor.CallEnd) {
			fmt.Printf("%d attempts: %v: %s\n", e.Attempts, e.Code, e.Reason)
		},
	}))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = retrier.Do(ctx, getOrder, func(context.Context) error { // or a call of a connection with retrier.DialOptions
		return status.Error(codes.Unavailable, "restarting")
	})
	// Output:
	// attempt 1: Unavailable: retry in 1ms
	// attempt 2: Unavailable: retry in 2ms
	// attempt 3: Unavailable: attempts_exhausted in 0s
	// 3 attempts: Unavailable: attempts_exhausted
}

// A test has the same delays each time: with FULL jitter and a chance of 1/2, half of each backoff.
func ExampleWithRandom() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent:  []string{getOrder},
		RetryPolicy: policy.RetryPolicy{InitialBackoff: 10 * time.Millisecond, Jitter: "FULL"},
	}, interceptor.WithRandom(func() float64 { return 0.5 }), interceptor.WithObserver(interceptor.Observer{
		Sent: func(_ context.Context, e interceptor.Event) { fmt.Println(e.Delay) },
	}))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = retrier.Do(ctx, getOrder, func(context.Context) error { return status.Error(codes.Unavailable, "restarting") })
	// Output:
	// 5ms
	// 10ms
}

// An interceptor after the Retrier sees each attempt.
func ExampleAttemptFromContext() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(getOrder, testserver.Fail(codes.Unavailable).Pushback("0"), testserver.OK()) // it may be retried at once
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		panic(err)
	}
	inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		number, hedge := interceptor.AttemptFromContext(ctx)
		fmt.Println("attempt", number, "hedge", hedge, status.Code(err))
		return err
	}
	options := append(retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))
	conn, err := grpc.NewClient(server.Target(), append(options, server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{})
	// Output:
	// attempt 1 hedge false Unavailable
	// attempt 2 hedge false OK
}

// attemptsOfCalls counts what gRPC begins: attempts, since each is a call of its own to gRPC.
type attemptsOfCalls struct{ n atomic.Int64 }

func (*attemptsOfCalls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return ctx
}

func (*attemptsOfCalls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}
func (*attemptsOfCalls) HandleConn(context.Context, stats.ConnStats) {}
func (a *attemptsOfCalls) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.Begin); ok {
		a.n.Add(1)
	}
}

// A stats handler of gRPC sees each attempt.
func ExampleWithStatsHandler() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(getOrder, testserver.Fail(codes.Unavailable).Pushback("0"), testserver.OK()) // it may be retried at once
	var counted attemptsOfCalls
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}},
		interceptor.WithStatsHandler(&counted)) // part of DialOptions
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{}), counted.n.Load())
	// Output: <nil> 2
}
