// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/balancer"
	"github.com/stagger-go/stagger/testserver"
)

// dial connects to three backends, waits until each has served a call, and then makes all of them fail.
func dial(options ...grpc.DialOption) (_ *grpc.ClientConn, _ []*testserver.Server, end func()) {
	servers := make([]*testserver.Server, 3)
	for i := range servers {
		srv, err := testserver.New()
		if err != nil {
			panic(err)
		}
		servers[i] = srv
	}
	conn, err := testserver.DialAll(servers, options...)
	if err != nil {
		panic(err)
	}
	for _, srv := range servers {
		for srv.Count("*") == 0 {
			_ = conn.Invoke(context.Background(), "/orders/Get", &emptypb.Empty{}, &emptypb.Empty{})
		}
	}
	for _, srv := range servers {
		srv.Reset()
		srv.On("*", testserver.Fail(codes.Unavailable, "restarting"))
	}
	return conn, servers, func() {
		_ = conn.Close()
		for _, srv := range servers {
			srv.Close()
		}
	}
}

func Example() {
	// The service config names the policy, and inside it the leaf policy that picks.
	conn, servers, end := dial(grpc.WithDefaultServiceConfig(
		`{"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]}`))
	defer end()

	// A retrying interceptor creates one context for all attempts of a call.
	retry := func(ctx context.Context, attempts int) error {
		ctx = balancer.NewContext(ctx)
		var err error
		for range attempts {
			if err = conn.Invoke(ctx, "/orders/Get", &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
				return nil
			}
		}
		return err
	}
	fmt.Println(retry(context.Background(), len(servers)))
	for i, srv := range servers {
		fmt.Println("backend", i, "has seen", srv.Count("/orders/Get"), "attempt")
	}
	// Output:
	// rpc error: code = Unavailable desc = restarting
	// backend 0 has seen 1 attempt
	// backend 1 has seen 1 attempt
	// backend 2 has seen 1 attempt
}
