// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otelstagger"
)

// What docs/observability.md and the package comment show of Go stands here, so that it compiles.

func packageComment(ctx context.Context, target string, options opentelemetry.Options, meterProvider metric.MeterProvider,
	tracerProvider trace.TracerProvider,
) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Watch(ctx, "retry.yaml",
		otelstagger.WithMetrics(meterProvider), otelstagger.WithTraces(tracerProvider))
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append([]grpc.DialOption{
		opentelemetry.DialOption(options), // gRPC's own metrics and traces: before the Retrier's
	}, retrier.DialOptions()...)...)
}

func pageTraces(ctx context.Context, meterProvider metric.MeterProvider, tracerProvider trace.TracerProvider) (*interceptor.Retrier, error) {
	return interceptor.Watch(ctx, "retry.yaml", otelstagger.WithMetrics(meterProvider), otelstagger.WithTraces(tracerProvider))
}

// docs/set-up.md shows it; make newuser runs that page's program.
func pageWithoutDialOptions(target string, creds credentials.TransportCredentials, retrier *interceptor.Retrier) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target,
		grpc.WithChainUnaryInterceptor(retrier.Unary()),
		grpc.WithChainStreamInterceptor(retrier.Stream()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}),
		grpc.WithTransportCredentials(creds))
	return conn, err
}

var _ = []any{packageComment, pageTraces, pageWithoutDialOptions}

func ExampleWithMetrics() {
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, otelstagger.WithMetrics(noop.NewMeterProvider()), otelstagger.WithTraces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithTraces() {
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, otelstagger.WithTraces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleBackends() {
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, otelstagger.WithMetrics(noop.NewMeterProvider(), otelstagger.Backends()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithMetrics_options() {
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, otelstagger.WithMetrics(noop.NewMeterProvider(),
		otelstagger.Backends(), // a series for each backend
		otelstagger.Methods(func(method string) bool { return strings.HasPrefix(method, "acme.") }), // others are "other"
		otelstagger.Target(func(target string) string { return strings.TrimPrefix(target, "dns:///") }),
		otelstagger.Attributes(attribute.String("retrier", "orders")),
	))
	fmt.Println(err)
	// Output: <nil>
}
