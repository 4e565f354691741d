// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// tripped is the smallest breaker there is: one failure opens its circuit for good. One for real use is in
// examples/breaker.
type tripped bool

type position string

func (p position) String() string { return string(p) }

func (t *tripped) State() position {
	if *t {
		return "open"
	}
	return "closed"
}

func (t *tripped) Allow() (done func(error), err error) {
	if *t {
		return nil, errors.New("the service is down")
	}
	return func(err error) { *t = tripped(status.Code(err) == codes.Unavailable) }, nil
}

func ExampleWithBreaker() {
	breakers := map[string]*tripped{} // real ones need a lock
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet,
		interceptor.WithBreaker(func(target, _ string) interceptor.Breaker[position] {
			if breakers[target] == nil {
				breakers[target] = new(tripped)
			}
			return breakers[target]
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(9, retrier.DialOptions()...)
	defer end()
	for range 2 {
		err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			fmt.Printf("%d attempts, %s: %s\n", e.Attempts, e.Reason, status.Convert(err).Message())
		}
	}
	// Output:
	// 1 attempts, breaker_open: restarting
	// 0 attempts, breaker_open: circuit breaker: the service is down
}

// Nobody has declared CreateOrder safe; with a key that the server knows, this call is.
func ExampleIdempotencyKey() {
	retrier, err := interceptor.Load("../examples/orders/retry.yaml", quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Default(testserver.Fail(codes.Unavailable).Pushback("0"), testserver.OK())
	conn, err := grpc.NewClient(server.Target(), append(server.DialOptions(), retrier.DialOptions()...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{},
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
