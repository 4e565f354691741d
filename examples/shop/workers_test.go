// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// checked is a service whose response time can change.
type checked struct {
	grpc_health_v1.UnimplementedHealthServer

	takes atomic.Int64 // nanoseconds
}

func (s *checked) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		return new(grpc_health_v1.HealthCheckResponse), nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// dial starts a server of a service with workers, nil for no limit. It returns a client whose calls have a deadline of one
// second and admission.
func dial(t *testing.T, s *checked, w *workers) grpc_health_v1.HealthClient {
	t.Helper()
	set, err := policy.Parse("", []byte(`methodConfig: [{name: [{}], admission: REFUSE, sendCriticality: true, timeout: 1s}]`))
	if err != nil {
		t.Fatal(err)
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if w != nil {
		options = w.serverOptions(retrier, policy.CriticalityDefault)
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(server, s)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///service", append(retrier.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return grpc_health_v1.NewHealthClient(conn)
}

// Answers after 700 ms of a call's second mean a queue if all workers are busy, and a slow service if few are. If a server
// reports nothing, both are possible: admission refuses nothing until a call has missed its deadline.
func TestWorkers_Admission(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		workers int // 0: the server
		refused bool
	}{
		"all workers are busy":  {1, true},
		"most workers are idle": {10, false},
		"no report":             {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(checked)
				var w *workers
				if row.workers > 0 {
					w = newWorkers(row.workers, pace{})
				}
				client := dial(t, s, w)
				call := func() error {
					_, err := client.Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
					return err
				}
				for i := range 6 {
					if i == 2 {
						s.takes.Store(int64(700 * time.Millisecond))
					}
					if err := call(); err != nil {
						t.Fatal(err)
					}
				}
				var running sync.WaitGroup
				for range 2 { // as many as can be
					running.Go(func() { _ = call() })
				}
				synctest.Wait()
				err := call()
				e, _ := errors.AsType[*interceptor.Error](err)
				if refused := e != nil && e.Reason == policy.ReasonOverloaded; refused != row.refused || refused && e.Attempts != 0 {
					t.Errorf("%v, %+v; refused should be %v", err, e, row.refused)
				}
				running.Wait()
			})
		})
	}
}

// A call that waits too long for a worker isn't processed.
func TestWorkers_Wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(checked)
		s.takes.Store(int64(2 * time.Second))
		client := dial(t, s, newWorkers(1, pace{}))
		var running sync.WaitGroup
		start := time.Now()
		for range 2 {
			running.Go(func() {
				if _, err := client.Check(t.Context(), new(grpc_health_v1.HealthCheckRequest)); status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("%v; want DEADLINE_EXCEEDED", err)
				}
			})
		}
		running.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %v; want the timeout", took)
		}
	})
}

// While all workers are busy, SHEDDABLE calls are refused at once, and others wait.
func TestWorkers_Criticality(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(checked)
		s.takes.Store(int64(300 * time.Millisecond))
		client := dial(t, s, newWorkers(1, pace{}))
		call := func(c policy.Criticality) (time.Duration, error) {
			start := time.Now()
			_, err := client.Check(interceptor.ContextWithCriticality(t.Context(), c), new(grpc_health_v1.HealthCheckRequest))
			return time.Since(start), err
		}
		var running sync.WaitGroup
		running.Go(func() { _, _ = call(policy.CriticalitySheddable) }) // no worker is busy
		synctest.Wait()
		if took, err := call(policy.CriticalitySheddable); status.Code(err) != codes.ResourceExhausted || took != 0 {
			t.Errorf("%v after %v; want a refusal at once", err, took)
		}
		if took, err := call(policy.CriticalityDefault); err != nil || took != 600*time.Millisecond {
			t.Errorf("%v after %v; want an answer after the wait for the worker", err, took)
		}
		running.Wait()
	})
}
