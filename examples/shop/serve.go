// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats/opentelemetry"

	_ "github.com/stagger-go/stagger/elsewhere" // the load balancing policy that retry.yaml names
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/observe/otelstagger"
)

// process is one of the four: a gRPC server that calls others, with its policies and its metrics.
type process struct {
	*workers

	retrier *interceptor.Retrier
	conns   map[string]*grpc.ClientConn // by the name of the service
	ledger  *ledger                     // of payments
}

// setting has the command line of a process.
type setting struct {
	service                     string
	listen, web, policy, ledger string
	below                       map[string]string // addresses of the called services, by their names
	attended                    bool              // it ends with its standard input
}

// serve runs a service until the program is stopped.
func serve(s setting) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.attended {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	retrier, err := interceptor.Watch(ctx, s.policy, otelstagger.WithMetrics(provider, otelstagger.Backends()))
	if err != nil {
		return err
	}
	defer retrier.Close()
	telemetry := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: provider}}
	p := &process{workers: newWorkers(services[s.service].workers, services[s.service].pace), retrier: retrier, conns: map[string]*grpc.ClientConn{}}
	for name, address := range s.below {
		// gRPC's metrics come before the Retrier's options, so that they count calls. A service that was away is found again
		// within a second.
		options := append([]grpc.DialOption{opentelemetry.DialOption(telemetry)}, retrier.DialOptions()...)
		conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: time.Second}))...)
		if err != nil {
			return err
		}
		defer conn.Close()
		p.conns[name] = conn
	}
	if s.ledger != "" {
		if p.ledger, err = openLedger(s.ledger); err != nil {
			return err
		}
	}

	server := grpc.NewServer(append(p.serverOptions(retrier), opentelemetry.ServerOption(telemetry))...)
	p.register(server, s.service)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	pages, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.web)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/debug/stagger/", debugpage.Config{}.Handler(retrier))
	mux.Handle("/debug/stagger/switch", debugpage.Config{}.SwitchHandler(retrier))
	if s.attended {
		mux.HandleFunc("POST /pace", p.setPace)
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	failed := make(chan error, 2)
	go func() { failed <- web.Serve(pages) }()
	go func() { failed <- server.Serve(lis) }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	server.Stop()
	return errors.Join(err, web.Close(), provider.Shutdown(context.Background()))
}

// setPace lets the show slow a service.
func (p *process) setPace(w http.ResponseWriter, r *http.Request) {
	var to pace
	if err := json.NewDecoder(r.Body).Decode(&to); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.pace.Store(&to)
}

// callsOf returns the -calls flag of a process.
func callsOf(service string, address func(name string) string) string {
	calls := slices.Clone(services[service].calls)
	for i, name := range calls {
		calls[i] = name + "=dns:///" + address(name)
	}
	return strings.Join(calls, ",")
}

// addresses reads "name=address,name=address".
func addresses(text string) (map[string]string, error) {
	list := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(part, "=")
		if _, known := services[name]; !ok || !known || address == "" {
			return nil, fmt.Errorf("-calls %q: want service=address, with commas between", text)
		}
		list[name] = address
	}
	return list, nil
}
