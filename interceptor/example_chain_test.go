// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// A service whose handlers make calls takes its server's options from the Retrier. If such a call has given up, and the handler fails, the
// service's callers don't retry.
func ExampleRetrier_ServerOptions() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(retrier.ServerOptions()...)
	server.Stop()
	// Output:
}

// A handler asks a cache, and does without it. The cache is down, and the service is then too busy for the request. Its callers may retry:
// without the option, the service would send them the pushback -1.
func ExampleOptional() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{}, interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	server, err := testserver.New(testserver.ServerOptions(retrier.ServerOptions()...))
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		cache := func(context.Context) error { return status.Error(codes.Unavailable, "the cache is down") }
		_ = retrier.Do(ctx, "/acme.cache.v1.CacheService/Get", cache, interceptor.Optional()) // or a call of a connection
		return testserver.Fail(codes.Unavailable, "busy")
	}))
	conn, err := grpc.NewClient(server.Target(), server.DialOptions()...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	var trailer metadata.MD
	err = conn.Invoke(context.Background(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer))
	fmt.Println(status.Code(err), trailer.Get("grpc-retry-pushback-ms"))
	// Output: Unavailable []
}
