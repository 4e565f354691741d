// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/otelstagger"
)

// fail lets a call to each of n targets fail after retries. The call is itself a retry of go-grpc-middleware.
func (s scene) fail(t *testing.T, n int) {
	t.Helper()
	down := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, options ...grpc.CallOption) error {
		err := status.Error(codes.Unavailable, "down")
		for _, o := range options { // as gRPC does after an attempt that has left the client
			switch o := o.(type) {
			case grpc.TrailerCallOption:
				*o.TrailerAddr = metadata.MD{}
			case grpc.OnFinishCallOption:
				o.OnFinish(err)
			}
		}
		return err
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-retry-attempty", "1")
	for i := range n {
		conn := testkit.Must(grpc.NewClient(fmt.Sprintf("passthrough:///target-%d", i), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
		_ = s.retrier.Unary()(ctx, method, nil, nil, conn, down, grpc.StaticMethod())
		testkit.NoError(t, conn.Close())
	}
}

// sums returns the sum of a metric's values by target, without those that have no target.
func sums(t *testing.T, m metricdata.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	add := func(labels attribute.Set, n float64) {
		if target, ok := labels.Value("grpc.target"); ok && target.AsString() != "" {
			all[target.AsString()] += n
		}
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Sum))
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Sum)
		}
	default:
		t.Errorf("%s is a %T", m.Name, data)
	}
	return all
}

// Budgets have at most a thousand services and "other".
func TestMetrics_ManyServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scene{reader: sdk.NewManualReader()}
		provider := sdk.NewMeterProvider(sdk.WithReader(s.reader), sdk.WithCardinalityLimit(0))
		s.retrier = retrierOf(t, `
budgets: [{name: each, scope: SERVICE, bucket: {}}]
methodConfig:
- name: [{}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE], budget: each}
`, otelstagger.WithMetrics(provider))
		answer := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
		for n := range 1100 {
			_ = s.retrier.Unary()(t.Context(), fmt.Sprintf("/made-up-%d/Get", n), nil, nil, nil, answer)
		}
		services := map[string]bool{}
		for _, m := range s.collect(t) {
			if data, ok := m.Data.(metricdata.Gauge[float64]); ok {
				for _, p := range data.DataPoints {
					service, _ := p.Attributes.Value("service")
					services[service.AsString()] = true
				}
			}
		}
		if len(services) != 1001 || !services["other"] {
			t.Errorf("%d services; want a thousand and other", len(services))
		}
	})
}

// A metric has at most a thousand targets and "other", however many targets a program has. Nothing that is counted is lost, and the
// error handler of OpenTelemetry hears of it once.
func TestMetrics_ManyTargets(t *testing.T) { // not parallel: OpenTelemetry has one error handler
	const n = 1500
	for name, row := range map[string]struct {
		options []otelstagger.MetricsOption
		metrics int // that have targets here
	}{
		"target":           {nil, 9},
		"labels of Target": {[]otelstagger.MetricsOption{otelstagger.Target(func(target string) string { return "of " + target })}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			var errs []error
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { errs = append(errs, err) }))
			synctest.Test(t, func(t *testing.T) {
				s := scene{reader: sdk.NewManualReader()}
				provider := sdk.NewMeterProvider(sdk.WithReader(s.reader), sdk.WithCardinalityLimit(0))
				s.retrier = retrierOf(t, strings.Replace(file, "scope: PROCESS, ", "", 1), otelstagger.WithMetrics(provider, row.options...))
				s.fail(t, n)
				found := 0
				for _, m := range s.collect(t) {
					all := sums(t, m)
					if len(all) == 0 {
						continue
					}
					found++
					sum := 0.0
					for _, value := range all {
						sum += value
					}
					if _, other := all["other"]; len(all) > 1001 || !other {
						t.Errorf("%s has %d targets; want a thousand and other", m.Name, len(all))
					}
					if want := map[string]float64{"stagger.client.outer_retries": n, "stagger.budget.granted": 2 * n}[m.Name]; want > 0 && sum != want {
						t.Errorf("%s counts %v; want %v", m.Name, sum, want)
					}
				}
				if found != row.metrics {
					t.Errorf("%d metrics have targets; want %d", found, row.metrics)
				}
			})
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), "more than 1000 targets") {
				t.Errorf("errors %v; want one, about the targets", errs)
			}
		})
	}
}
