// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package otel shows what a Retrier does in OpenTelemetry: [Metrics] and [Traces].
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml",
//		otel.Metrics(meterProvider), otel.Traces(tracerProvider))
//	conn, err := grpc.NewClient(target, append([]grpc.DialOption{
//		opentelemetry.DialOption(…), // gRPC's own metrics and traces: before the Retrier's
//	}, retrier.DialOptions()...)...)
//
// It needs OpenTelemetry's API only; which SDK and exporter are behind it is the program's choice.
package otel
