// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"log"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
)

// What README, docs and the package comment show of Go stands here or in another test, so that it compiles.

func packageComment(ctx context.Context) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Watch(ctx, "retry.yaml")
	if err != nil {
		return nil, err
	}
	creds := credentials.NewTLS(nil) // insecure.NewCredentials() for a server without TLS
	return grpc.NewClient("dns:///orders.example.com:443",
		append(retrier.DialOptions(), grpc.WithTransportCredentials(creds))...)
}

func pageDial(ctx context.Context, target string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Watch(ctx, "retry.yaml")
	if err != nil {
		log.Fatal(err) // every error in the file, each with line, column and what would be right
	}
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(),
		grpc.WithTransportCredentials(creds))...)
	return conn, err
}

func pageReadme(target string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{"/acme.orders.v1.OrderService/GetOrder"}},
		interceptor.WithObserver(observe.Slog(slog.Default()))) // logs retries
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(), grpc.WithTransportCredentials(creds))...)
	return conn, err
}

func pageDefault(target string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent: []string{"/acme.orders.v1.OrderService/GetOrder"}, // in addition to what the .proto declares
	})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(),
		grpc.WithTransportCredentials(creds))...)
	return conn, err
}

func pageReason(err error) {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		log.Printf("gave up after %d attempts in %v: %s", e.Attempts, e.Elapsed, e.Reason)
	}
}

func pageServer(retrier *interceptor.Retrier) *grpc.Server {
	return grpc.NewServer(retrier.ServerOptions()...)
}

func pageOff(retrier *interceptor.Retrier) error {
	if err := retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}); err != nil {
		return err
	}
	return nil
}

// cacheClient is a client as generated code has it.
type cacheClient interface {
	Get(ctx context.Context, key *wrapperspb.StringValue, opts ...grpc.CallOption) (*wrapperspb.StringValue, error)
}

func pageOptional(ctx context.Context, cache cacheClient, key *wrapperspb.StringValue) string {
	cached, err := cache.Get(ctx, key, interceptor.Optional()) // a failure here never stops retries by the caller above
	if err != nil {
		return ""
	}
	return cached.GetValue()
}

func pageHealth(ctx context.Context, conn *grpc.ClientConn, healthServer *health.Server) {
	for state := conn.GetState(); state != connectivity.Shutdown; state = conn.GetState() {
		serving := healthpb.HealthCheckResponse_SERVING
		if state == connectivity.TransientFailure {
			serving = healthpb.HealthCheckResponse_NOT_SERVING
		}
		healthServer.SetServingStatus("", serving)
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

var _ = []any{packageComment, pageHealth, pageDial, pageReadme, pageDefault, pageOff, pageReason, pageServer, pageOptional}
