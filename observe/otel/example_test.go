// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otel"
)

// What docs/observability.md shows of Go stands here, so that it compiles.

func pageMetrics(ctx context.Context, meterProvider metric.MeterProvider) (*interceptor.Retrier, error) {
	return interceptor.Watch(ctx, "retry.yaml", otel.Metrics(meterProvider))
}

func pageTraces(ctx context.Context, meterProvider metric.MeterProvider, tracerProvider trace.TracerProvider) (*interceptor.Retrier, error) {
	return interceptor.Watch(ctx, "retry.yaml", otel.Metrics(meterProvider), otel.Traces(tracerProvider))
}

func pageOrder(target string, creds credentials.TransportCredentials, options opentelemetry.Options,
	retrier *interceptor.Retrier,
) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append([]grpc.DialOption{
		opentelemetry.DialOption(options), // gRPC's: before the Retrier's
		grpc.WithTransportCredentials(creds),
	}, retrier.DialOptions()...)...)
}

var _ = []any{pageMetrics, pageTraces, pageOrder}

func ExampleMetrics() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otel.Metrics(noop.NewMeterProvider()), otel.Traces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTraces() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otel.Traces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleMetrics_options() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otel.Metrics(noop.NewMeterProvider(),
		otel.GRPCNames(), // grpc.client.call.retries, as gRFC A96 has them
		otel.Methods(func(method string) bool { return strings.HasPrefix(method, "acme.") }), // others are "other"
		otel.Target(func(target string) string { return strings.TrimPrefix(target, "dns:///") }),
		otel.Attributes(attribute.String("retrier", "orders")),
	))
	fmt.Println(err)
	// Output: <nil>
}
