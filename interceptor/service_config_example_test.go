// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// No policy file: what the connection receives as its service config is carried out. This one is its default;
// usually a resolver delivers it.
func ExampleWithServiceConfig() {
	srv, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	srv.On("/acme.orders.v1.OrderService/GetOrder", testserver.Fail(codes.Unavailable), testserver.OK(wrapperspb.String("order 7")))

	retrier, err := interceptor.New(nil, interceptor.WithServiceConfig())
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(srv.Target(), append(append(srv.DialOptions(), retrier.DialOptions()...),
		grpc.WithDefaultServiceConfig(`{"methodConfig": [{
			"name": [{"service": "acme.orders.v1.OrderService"}],
			"retryPolicy": {
				"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "1s", "backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE"]
			}
		}]}`))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	reply := new(wrapperspb.StringValue)
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", wrapperspb.String("7"), reply)
	fmt.Println(reply.GetValue(), err, "after", len(srv.Attempts()), "attempts")
	// Output: order 7 <nil> after 2 attempts
}
