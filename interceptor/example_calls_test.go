// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// dialOrders connects to a server that is restarting for a number of attempts, and lets clients retry at once. GetOrder may run twice.
// CreateOrder may not.
func dialOrders(failures int) (conn *grpc.ClientConn, server *testserver.Server, end func()) {
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	server.On("*", testserver.Fail(codes.Unavailable, "restarting").Pushback("0").Times(failures), testserver.OK())
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{"/acme.orders.v1.OrderService/GetOrder"}},
		interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	conn, err = grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	return conn, server, func() { _ = conn.Close(); server.Close() }
}

// This call isn't retried, as if there were no Retrier.
func ExampleDisable() {
	conn, server, end := dialOrders(9)
	defer end()
	err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.Disable())
	fmt.Println(status.Code(err), "attempts:", server.Count("*"))
	// Output: Unavailable attempts: 1
}

func ExampleMaxAttempts() {
	conn, server, end := dialOrders(9)
	defer end()
	err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.MaxAttempts(2))
	fmt.Println(status.Code(err), "attempts:", server.Count("*"))
	// Output: Unavailable attempts: 2
}

// CreateOrder isn't declared idempotent, but this call is: the order has a number that the server knows.
func ExampleIdempotent() {
	conn, server, end := dialOrders(1)
	defer end()
	err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.Idempotent())
	fmt.Println(status.Code(err), "attempts:", server.Count("*"))
	// Output: OK attempts: 2
}

// CreateOrder isn't declared idempotent, but this call is: the server runs it once for each key.
func ExampleIdempotencyKey() {
	conn, server, end := dialOrders(1)
	defer end()
	err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.IdempotencyKey("order-4711"))
	fmt.Println(err)
	for _, attempt := range server.Attempts() {
		fmt.Println(attempt.Metadata.Get("idempotency-key"))
	}
	// Output:
	// <nil>
	// [order-4711]
	// [order-4711]
}

// A nightly job has more patience than other callers of the method.
func ExamplePolicy() {
	nightly, err := policy.New(policy.Config{MethodConfig: []policy.MethodConfig{{
		Name:        []string{"/acme.orders.v1.OrderService/GetOrder"},
		RetryPolicy: &policy.RetryPolicy{MaxAttempts: 5},
	}}})
	if err != nil {
		panic(err)
	}
	conn, server, end := dialOrders(4)
	defer end()
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{},
		interceptor.Policy(nightly.Lookup("/acme.orders.v1.OrderService/GetOrder")))
	fmt.Println(status.Code(err), "attempts:", server.Count("*"))
	// Output: OK attempts: 5
}

// A handler that wraps the error keeps the details. The text is the server's.
func ExampleError() {
	conn, _, end := dialOrders(9)
	defer end()
	err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{})
	err = fmt.Errorf("order 7: %w", err)
	fmt.Println(err)
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println("attempts:", e.Attempts, "reason:", e.Reason)
	}
	// Output:
	// order 7: rpc error: code = Unavailable desc = restarting
	// attempts: 1 reason: not_idempotent
}
