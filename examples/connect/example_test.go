// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	ours "github.com/stagger-go/stagger/examples/connect"
	"github.com/stagger-go/stagger/interceptor"
)

const getOrder = "/acme.orders.v1.OrderService/GetOrder"

// A connect server is restarting for the first two requests.
func Example() {
	requests := 0
	mux := http.NewServeMux()
	mux.Handle(getOrder, connect.NewUnaryHandler(getOrder, func(_ context.Context, r *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		requests++
		fmt.Printf("request %d, %s earlier attempts\n", requests, r.Header().Get("Grpc-Previous-Rpc-Attempts"))
		if requests < 3 {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("restarting"))
		}
		return connect.NewResponse(&emptypb.Empty{}), nil
	}))
	server := httptest.NewServer(mux)
	defer server.Close()

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](http.DefaultClient, server.URL+getOrder,
		connect.WithInterceptors(ours.Interceptor(retrier, "orders")))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
	fmt.Println(err)
	// Output:
	// request 1,  earlier attempts
	// request 2, 1 earlier attempts
	// request 3, 2 earlier attempts
	// <nil>
}

// A method that nothing declares idempotent runs once, and the caller gets connect's error.
func ExampleInterceptor_notIdempotent() {
	const createOrder = "/acme.orders.v1.OrderService/CreateOrder"
	requests := 0
	mux := http.NewServeMux()
	mux.Handle(createOrder, connect.NewUnaryHandler(createOrder, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		requests++
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("restarting"))
	}))
	server := httptest.NewServer(mux)
	defer server.Close()

	retrier, err := interceptor.Default(interceptor.DefaultPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](http.DefaultClient, server.URL+createOrder,
		connect.WithInterceptors(ours.Interceptor(retrier, "orders")))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
	fmt.Println(requests, connect.CodeOf(err))
	// Output: 1 unavailable
}
