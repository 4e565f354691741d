// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package otel reports on Retriers to OpenTelemetry, with [Metrics] and [Traces].
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml",
//		otel.Metrics(meterProvider), otel.Traces(tracerProvider))
//	conn, err := grpc.NewClient(target, append([]grpc.DialOption{
//		opentelemetry.DialOption(…), // gRPC's own metrics and traces: before the Retrier's
//	}, retrier.DialOptions()...)...)
//
// It needs only OpenTelemetry's API; the program chooses SDK and exporter.
package otel
