// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/elsewhere"
	_ "github.com/stagger-go/stagger/elsewhere" // a program that only names the policy in its file imports it so
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The program imports package elsewhere, and its file names the load balancing policy.
func Example() {
	set, err := policy.Parse("retry.yaml", []byte(`
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}, {round_robin: {}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE}
`))
	if err != nil {
		panic(err)
	}
	retrier, err := interceptor.New(set, interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	conn, servers, end := dialThree(retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()

	servers[0].On("*", testserver.Fail(codes.Unavailable)) // two of three work
	for range 100 {
		if err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			panic(err)
		}
	}
	fmt.Println("all of 100 calls have succeeded")
	// Output: all of 100 calls have succeeded
}

// A connection has the policy though no file names it.
func ExampleDialOption() {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE}
`))
	if err != nil {
		panic(err)
	}
	retrier, err := interceptor.New(set, interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	options := append(retrier.DialOptions(), elsewhere.DialOption())
	conn, servers, end := dialThree(options...) // grpc.NewClient(target, options...)
	defer end()

	servers[0].On("*", testserver.Fail(codes.Unavailable)) // two of three work
	for range 100 {
		if err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			panic(err)
		}
	}
	fmt.Println("all of 100 calls have succeeded")
	// Output: all of 100 calls have succeeded
}

// An interceptor that retries gives each call its own context.
func ExampleNewContext() {
	twice := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx = elsewhere.NewContext(ctx)
		err := invoke(ctx, method, req, reply, cc, opts...)
		if status.Code(err) == codes.Unavailable {
			err = invoke(ctx, method, req, reply, cc, opts...)
		}
		return err
	}
	conn, servers, end := dialThree(elsewhere.DialOption(), grpc.WithUnaryInterceptor(twice))
	defer end()

	servers[0].On("*", testserver.Fail(codes.Unavailable)) // two of three work
	for range 100 {
		if err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			panic(err)
		}
	}
	fmt.Println("all of 100 calls have succeeded")
	// Output: all of 100 calls have succeeded
}

// dialThree connects to three backends, all of which have answered a call.
func dialThree(options ...grpc.DialOption) (_ *grpc.ClientConn, servers []*testserver.Server, end func()) {
	for range 3 {
		s, err := testserver.New()
		if err != nil {
			panic(err)
		}
		servers = append(servers, s)
	}
	conn, err := testserver.DialAll(servers, options...)
	if err != nil {
		panic(err)
	}
	for _, s := range servers {
		for s.Count("*") == 0 {
			if err := conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/CreateOrder", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				panic(err)
			}
		}
	}
	return conn, servers, func() {
		_ = conn.Close()
		for _, s := range servers {
			s.Close()
		}
	}
}

// packageComment is the code of the package's comment, so that it compiles.
func packageComment(target string, retrier *interceptor.Retrier, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(), elsewhere.DialOption(),
		grpc.WithTransportCredentials(creds))...)
	return conn, err
}

var _ = packageComment
