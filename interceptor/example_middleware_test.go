// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Interceptors of go-grpc-middleware come before the Retrier: they see each call once.
func Example_goGRPCMiddleware() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting").Pushback("0"), testserver.OK()) // it may be retried at once

	target, transport := server.Target(), server.DialOptions() // for yours: its address, and grpc.WithTransportCredentials

	logger := logging.LoggerFunc(func(_ context.Context, _ logging.Level, message string, _ ...any) { fmt.Println(message) })
	set, err := policy.New(policy.Config{MethodConfig: []policy.MethodConfig{{Name: []string{getOrder}, RetryPolicy: &policy.RetryPolicy{}}}})
	if err != nil {
		panic(err)
	}
	retrier, err := interceptor.New(set, interceptor.WithObserver(observe.Log(logger)))
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(target, slices.Concat(
		[]grpc.DialOption{grpc.WithChainUnaryInterceptor(
			timeout.UnaryClientInterceptor(2*time.Second), // of the call: one deadline for all its attempts
			logging.UnaryClientInterceptor(logger),        // a line for each call
		)},
		retrier.DialOptions(), // with observe.Log(logger): a line for retries, and for calls that fail
		transport,
	)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	fmt.Println(conn.Invoke(context.Background(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
	// Output:
	// started call
	// stagger: retry
	// finished call
	// <nil>
}

// A selector of go-grpc-middleware leaves out calls that no policy should ever touch.
func ExampleRetrier_Unary() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting").Pushback("0"), testserver.OK()) // it may be retried at once

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		panic(err)
	}
	notHealth := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool {
		return !strings.HasPrefix(call.FullMethod(), "/grpc.health.v1.")
	})
	conn, err := grpc.NewClient(server.Target(), append(server.DialOptions(),
		grpc.WithDisableRetry(), // as Retrier.DialOptions does: gRPC must not retry too
		grpc.WithChainUnaryInterceptor(
			timeout.UnaryClientInterceptor(2*time.Second),
			selector.UnaryClientInterceptor(retrier.Unary(), notHealth),
		))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	fmt.Println(conn.Invoke(context.Background(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
	// Output: <nil>
}
