// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/elsewhere" // registers the load balancing policy that the file names
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

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
	retrier, err := interceptor.New(set)
	if err != nil {
		panic(err)
	}
	conn, servers, end := dialThree(retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()

	servers[0].On("*", testserver.Fail(codes.Unavailable)) // two of three work
	for range 100 {
		if err := conn.Invoke(context.Background(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
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
			if err := conn.Invoke(context.Background(), create, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
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
