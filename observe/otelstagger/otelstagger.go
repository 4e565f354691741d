// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package otelstagger reports on Retriers to OpenTelemetry, with [WithMetrics] and [WithTraces].
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml",
//		otelstagger.WithMetrics(meterProvider), otelstagger.WithTraces(tracerProvider))
//	if err != nil {
//		return nil, err
//	}
//	return grpc.NewClient(target, append([]grpc.DialOption{
//		opentelemetry.DialOption(options), // gRPC's own metrics and traces: before the Retrier's
//	}, retrier.DialOptions()...)...)
//
// It needs only OpenTelemetry's API; the program chooses SDK and exporter.
package otelstagger
