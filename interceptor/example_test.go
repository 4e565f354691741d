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

// A server is restarting for the first two attempts of a call.
func Example() {
	server, err := testserver.New() // a fake server in this process
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On("*", testserver.Fail(codes.Unavailable, "restarting").Times(2), testserver.OK())
	target, transport := server.Target(), server.DialOptions() // for yours: its address, and grpc.WithTransportCredentials

	const getOrder = "/acme.orders.v1.OrderService/GetOrder" // generated code: orderspb.OrderService_GetOrder_FullMethodName
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(), transport...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{}) // generated code: client.GetOrder(ctx, request)
	fmt.Println(status.Code(err), "after", server.Count(getOrder), "attempts")
	// Output: OK after 3 attempts
}

// A program sees the attempts of its calls. GetOrder is named, so it may run twice. CreateOrder isn't, so it runs once.
func ExampleDefault() {
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On("*", testserver.Fail(codes.Unavailable, "restarting").Times(2), testserver.OK())

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent:  []string{"/acme.orders.v1.OrderService/GetOrder"}, // in addition to what the .proto declares
		RetryPolicy: policy.RetryPolicy{MaxAttempts: 4, InitialBackoff: 10 * time.Millisecond},
	}, interceptor.WithObserver(interceptor.Observer{Attempt: func(_ context.Context, e interceptor.Event) {
		fmt.Printf("%s, attempt %d: %v\n", e.Method, e.Attempt, e.Code)
	}}))
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
	err = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println("GetOrder:", err)
	err = conn.Invoke(ctx, "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println("CreateOrder:", status.Code(err), e.Reason)
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder, attempt 1: Unavailable
	// /acme.orders.v1.OrderService/GetOrder, attempt 2: Unavailable
	// /acme.orders.v1.OrderService/GetOrder, attempt 3: OK
	// GetOrder: <nil>
	// /acme.orders.v1.OrderService/CreateOrder, attempt 1: Unavailable
	// CreateOrder: Unavailable not_idempotent
}
