// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command success makes a thousand calls that succeed immediately, and writes which code of the library they ran to the directory of
// its argument. It is built with -cover.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"runtime/coverage"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	retry := policy.RetrySpec{
		MaxAttempts: 3,
		Backoff:     policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		Codes:       []codes.Code{codes.Unavailable},
	}
	set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{Names: []string{"/"}, Spec: policy.Spec{Retry: &retry}}}})
	if err != nil {
		return err
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		return err
	}
	lis, server := bufconn.Listen(1<<16), grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:memory", append(retrier.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
	if err != nil {
		return err
	}
	client := grpc_health_v1.NewHealthClient(conn)
	for i := range 1010 {
		if i == 10 { // what only the first calls do does not count
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
		}
		if _, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
			return err
		}
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}
