// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/stagger-go/stagger/observe/otel"
)

// newProvider is a provider of metrics as a program has one.
func newProvider() *sdk.MeterProvider {
	return sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
}

// grpcMetrics adds gRPC's own metrics of calls and attempts to a client.
func grpcMetrics(prepare func(plan) (setup, error)) func(plan) (setup, error) {
	return func(p plan) (setup, error) {
		made, err := prepare(p)
		if err != nil {
			return setup{}, err
		}
		metrics := opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: newProvider()}})
		made.options = slices.Concat([]grpc.DialOption{metrics}, made.options) // before the interceptors, so that it counts calls
		return made, nil
	}
}

// staggerMetrics is stagger with its metrics.
func staggerMetrics(p plan) (setup, error) {
	return retries(budgetRatio, otel.Metrics(newProvider()))(p)
}
