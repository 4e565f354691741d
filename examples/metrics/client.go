// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otel"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// client is a client of the order service, and its metrics.
type client struct {
	conn     *grpc.ClientConn
	retrier  *interceptor.Retrier
	provider *sdk.MeterProvider
	registry *prometheus.Registry
}

// newClient is a client of a server in this program, with the policy of the order service.
func newClient(server *testserver.Server) (*client, error) {
	set, err := policy.Parse(orders.File, orders.Policy)
	if err != nil {
		return nil, err
	}
	return dial(server.Target(), set, server.DialOptions()...)
}

// dial records the calls by gRPC's own metrics, and what stagger makes of them by stagger's.
func dial(target string, set *policy.Set, options ...grpc.DialOption) (*client, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	retrier, err := interceptor.New(set, otel.Metrics(provider))
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target, slices.Concat(
		[]grpc.DialOption{opentelemetry.DialOption(opentelemetry.Options{ // before the Retrier's options: it counts calls
			MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: provider},
		})},
		retrier.DialOptions(), options)...)
	if err != nil {
		return nil, err
	}
	return &client{conn, retrier, provider, registry}, nil
}

// metrics serves what Prometheus scrapes.
func (c *client) metrics() http.Handler {
	return promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{})
}

func (c *client) close() error {
	return errors.Join(c.conn.Close(), c.provider.Shutdown(context.Background()))
}
