// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Metrics is a gRPC client that shows in Prometheus' form, and on a page, what its Retrier does, while its server has
// one outage after the other:
//
//	go run . &
//	prometheus --config.file=prometheus.yml
//
// alerts.yaml are the rules that its alerts follow, dashboard.json is a dashboard for Grafana.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/observe/otel"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9464", "`address` to serve /metrics at")
	flag.Parse()
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run plays outages and serves the metrics of the client until the program is interrupted.
func run(listen string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := testserver.New(testserver.Keep(0))
	if err != nil {
		return err
	}
	defer server.Close()
	c, err := newClient(server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.metrics())
	mux.Handle("/debug/stagger/", debugpage.Handler(c.retrier))
	mux.Handle("/debug/stagger/switch", debugpage.Switch{}.Handler(c.retrier))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%[1]s/metrics\nhttp://%[1]s/debug/stagger/\nhttp://%[1]s/debug/stagger/switch\n", lis.Addr())

	played := make(chan error, 1)
	go func() {
		played <- play(ctx, server, c.conn, day)
		_ = web.Close() // only once no call adds to the metrics any more
	}()
	if err := web.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-played
}

// phase is how the server answers for a while.
type phase struct {
	length time.Duration
	answer testserver.Step
}

// day is what the server goes through, over and over.
var day = []phase{
	{5 * time.Second, testserver.OK()},
	{10 * time.Second, testserver.Random(1, 0.05, testserver.Fail(codes.Unavailable, "restarting"))}, // retries help
	{5 * time.Second, testserver.Random(2, 0.05, testserver.OK().Delay(300*time.Millisecond))},       // so do hedges
	{10 * time.Second, testserver.Fail(codes.Unavailable, "down")},                                   // nothing helps
}

// One call every 10 ms, of which one in 20 creates an order.
const (
	between     = 10 * time.Millisecond
	createEvery = 20
)

// play takes the server through the phases until ctx ends, while calls are made. It returns when all have ended.
func play(ctx context.Context, server *testserver.Server, conn *grpc.ClientConn, phases []phase) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(between)
	defer tick.Stop()
	for i := 0; ; i++ {
		now := phases[i%len(phases)]
		if err := server.Set("*", now.answer); err != nil {
			return err
		}
		for n := range int(now.length / between) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			method := orders.GetOrder
			if n%createEvery == 0 {
				method = orders.CreateOrder
			}
			calls.Go(func() {
				// How the call ends is what the metrics show.
				_ = conn.Invoke(context.WithoutCancel(ctx), method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
			})
		}
	}
}

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
