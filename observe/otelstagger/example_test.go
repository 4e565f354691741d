// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
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
	"github.com/stagger-go/stagger/observe"
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

func pageMetrics(ctx context.Context, meterProvider metric.MeterProvider) (*interceptor.Retrier, error) {
	return interceptor.Watch(ctx, "retry.yaml", otelstagger.WithMetrics(meterProvider))
}

func pageTraces(ctx context.Context, meterProvider metric.MeterProvider, tracerProvider trace.TracerProvider) (*interceptor.Retrier, error) {
	return interceptor.Watch(ctx, "retry.yaml", otelstagger.WithMetrics(meterProvider), otelstagger.WithTraces(tracerProvider))
}

func pageOrder(target string, creds credentials.TransportCredentials, options opentelemetry.Options,
	retrier *interceptor.Retrier,
) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, slices.Concat(
		[]grpc.DialOption{opentelemetry.DialOption(options)}, // gRPC's: before the Retrier's
		retrier.DialOptions(),
		[]grpc.DialOption{grpc.WithTransportCredentials(creds)},
	)...)
}

// docs/production.md shows it.
func pageProduction(ctx context.Context, meterProvider metric.MeterProvider, clientCreds, serverCreds credentials.TransportCredentials,
	lis net.Listener, register func(*grpc.Server, *grpc.ClientConn),
) error {
	retrier, err := interceptor.Watch(ctx, "/etc/stagger/retry.yaml",
		otelstagger.WithMetrics(meterProvider), interceptor.WithObserver(observe.Slog(slog.Default())))
	if err != nil {
		return err // every error in the file, each with line, column and what would be right
	}
	telemetry := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: meterProvider}}

	conn, err := grpc.NewClient("dns:///orders:50051", slices.Concat(
		[]grpc.DialOption{opentelemetry.DialOption(telemetry)}, // before the Retrier's options, so that it counts calls
		retrier.DialOptions(),
		[]grpc.DialOption{grpc.WithTransportCredentials(clientCreds)}, // your own come last: of two keepalives, gRPC uses the last
	)...)
	if err != nil {
		return err
	}
	defer conn.Close()

	server := grpc.NewServer(append(retrier.ServerOptions(), // one layer of a chain retries
		opentelemetry.ServerOption(telemetry),
		grpc.Creds(serverCreds),
		// DNS is asked again when a connection ends: so clients find new pods within five minutes.
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 5 * time.Minute, MaxConnectionAgeGrace: time.Minute}),
	)...)
	register(server, conn)
	go func() {
		<-ctx.Done()
		retrier.Close() // ends waits for retries, which GracefulStop would wait for
		server.GracefulStop()
	}()
	return server.Serve(lis)
}

var _ = []any{packageComment, pageMetrics, pageTraces, pageOrder, pageProduction}

func ExampleWithMetrics() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otelstagger.WithMetrics(noop.NewMeterProvider()), otelstagger.WithTraces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithTraces() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otelstagger.WithTraces(tracenoop.NewTracerProvider()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleBackends() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otelstagger.WithMetrics(noop.NewMeterProvider(), otelstagger.Backends()))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithMetrics_options() {
	_, err := interceptor.Load("../../examples/orders/retry.yaml", otelstagger.WithMetrics(noop.NewMeterProvider(),
		otelstagger.GRPCNames(), // grpc.client.call.retries, as gRFC A96 has them
		otelstagger.Methods(func(method string) bool { return strings.HasPrefix(method, "acme.") }), // others are "other"
		otelstagger.Target(func(target string) string { return strings.TrimPrefix(target, "dns:///") }),
		otelstagger.Attributes(attribute.String("retrier", "orders")),
	))
	fmt.Println(err)
	// Output: <nil>
}
