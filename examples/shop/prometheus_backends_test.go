// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/policy"
)

// faster are the alerts' times as a real Prometheus plays them: promtool plays the real ones.
var faster = strings.NewReplacer(
	"[2m]", "[6s]", "120 *", "6 *", "for: 3m", "for: 4s",
	"[3m]", "[9s]", "[10m]", "[20s]", "600 *", "20 *", "for: 4m", "for: 6s")

// instance is one of the backends of orders.
type instance struct {
	address string
	does    atomic.Value // "", hangs or fails
}

const (
	answers = ""
	freezes = "hangs"
	breaks  = "fails"
)

// startInstance starts a backend, which answers any unary call.
func startInstance(t *testing.T) *instance {
	t.Helper()
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{address: lis.Addr().String()}
	i.does.Store(answers)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		switch i.does.Load() {
		case freezes:
			<-stream.Context().Done()
			return status.FromContextError(stream.Context().Err()).Err()
		case breaks:
			return status.Error(codes.Unavailable, "disk full")
		}
		return stream.SendMsg(new(emptypb.Empty))
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return i
}

// startClient starts a program that calls the instances until the test ends, with the shop's policies, and returns the address of its
// metrics.
func startClient(t *testing.T, instances []*instance) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Load("retry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	retrier, err := interceptor.New(set, otelstagger.WithMetrics(sdk.NewMeterProvider(sdk.WithReader(reader)), otelstagger.Backends()))
	if err != nil {
		t.Fatal(err)
	}
	addresses := manual.NewBuilderWithScheme("instances")
	var state resolver.State
	for _, i := range instances {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: i.address})
	}
	addresses.InitialState(state)
	conn, err := grpc.NewClient("instances:///orders", append(retrier.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithResolvers(addresses))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			method := "GetOrder"
			if n%20 == 0 {
				method = "CreateOrder"
			}
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_ = conn.Invoke(ctx, "/"+names["orders"]+"/"+method, new(emptypb.Empty), new(emptypb.Empty), grpc.StaticMethod())
			})
		}
	})
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(func() {
		stop()
		calls.Wait()
		_ = conn.Close()
		web.Close()
	})
	return web.Listener.Addr().String()
}

// firing is an alert of Prometheus' API.
type firing struct {
	State       string
	Labels      struct{ Alertname, Severity string }
	Annotations struct{ Summary string }
}

// await waits until the critical alerts that fire are as is wants them.
func (p scraper) await(t *testing.T, what string, is func([]firing) bool) {
	t.Helper()
	var last []firing
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		var data struct{ Alerts []firing }
		p.get(t.Context(), t, "/api/v1/alerts", &data)
		last = nil
		for _, a := range data.Alerts {
			if a.State == "firing" && a.Labels.Severity == "critical" {
				last = append(last, a)
			}
		}
		if is(last) {
			return
		}
	}
	t.Fatalf("%s: %+v fire", what, last)
}

// One of three backends hangs, is well again, and then another one fails. A real Prometheus has the critical alert with its address,
// and the code.
func TestPrometheus_Backends(t *testing.T) {
	required(t)
	t.Parallel()
	instances := []*instance{startInstance(t), startInstance(t), startInstance(t)}
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(rules, []byte(faster.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startPrometheusWith(t.Context(), t, rules, []string{startClient(t, instances)})
	p.await(t, "at first", func(f []firing) bool {
		return len(f) == 0 && p.hasData(t.Context(), t, "stagger_client_attempts_total")
	})
	for _, row := range []struct {
		instance   int
		does, says string
	}{{1, freezes, "most slow, with CANCELLED"}, {2, breaks, "most with UNAVAILABLE"}} {
		i := instances[row.instance]
		i.does.Store(row.does)
		p.await(t, "one "+row.does, func(list []firing) bool {
			for _, a := range list {
				summary, where := a.Annotations.Summary, "the backend "+i.address+" of instances:///orders"
				if a.Labels.Alertname == "StaggerBackendFails" && strings.Contains(summary, where) && strings.Contains(summary, row.says) {
					t.Log(summary)
					return true
				}
			}
			return false
		})
		i.does.Store(answers)
		p.await(t, "after one "+row.does, func(list []firing) bool {
			for _, a := range list {
				if a.Labels.Alertname == "StaggerBackendFails" {
					return false
				}
			}
			return true
		})
	}
}
