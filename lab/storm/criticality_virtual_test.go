// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// mixedLoad is an overload of two kinds of calls: some may fail, and the others need three quarters of the capacity.
type mixedLoad struct {
	load      float64 // in times of the capacity
	sheddable float64 // part of the calls that may
	processes int
	sheds     bool             // the server refuses by criticality; else it lets all calls wait for a worker
	admission policy.Admission // of the clients
}

const (
	mixedWorkers = 20
	mixedTime    = 50 * time.Millisecond // of service, on average
	mixedFor     = 10 * time.Second
	mixedMethod  = "/acme.orders.v1.OrderService/GetOrder"
)

// chance is a source of random numbers for many goroutines.
type chance struct {
	mu   sync.Mutex
	from *rand.Rand
}

func (c *chance) draw(f func(*rand.Rand) float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f(c.from)
}

func (c *chance) part() float64 { return c.draw((*rand.Rand).Float64) }

func (c *chance) around(d float64) time.Duration {
	return time.Duration(d * c.draw((*rand.Rand).ExpFloat64))
}

// floor has the workers of a server.
type floor chan struct{}

func (f floor) take(sheds bool, requests *atomic.Int64) func(context.Context, string) (func(), error) {
	return func(ctx context.Context, _ string) (func(), error) {
		requests.Add(1)
		free := func() { <-f }
		if sheds && interceptor.CriticalityFromContext(ctx) == policy.CriticalitySheddable {
			select {
			case f <- struct{}{}:
				return free, nil
			default:
				return nil, status.Error(codes.ResourceExhausted, "all workers are busy")
			}
		}
		select {
		case f <- struct{}{}:
			return free, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// mixedResult counts calls and their successes, by criticality, and requests at the server.
type mixedResult struct {
	calls, succeeded map[policy.Criticality]int
	requests         float64 // for each call
}

func (r mixedResult) part(c policy.Criticality) float64 {
	return 100 * float64(r.succeeded[c]) / float64(r.calls[c])
}

func (m mixedLoad) play(t *testing.T) (r mixedResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		random, requests := &chance{from: rand.New(rand.NewPCG(26, 5))}, new(atomic.Int64)
		retry := policy.DefaultRetry()
		retry.Codes = append(retry.Codes, codes.ResourceExhausted)
		set := must.Get(policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
			Names: []string{"/acme.orders.v1.OrderService/GetOrder"},
			Spec:  policy.Spec{Retry: &retry, Timeout: time.Second, Admission: m.admission, SendCriticality: true},
		}}}))(t)
		var conns []*grpc.ClientConn
		var server *testserver.Server
		for range m.processes {
			retrier := must.Get(interceptor.New(set, inside.Random(random.part).(interceptor.Option), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
			if server == nil {
				server = testserver.Start(t, testserver.Keep(0), testserver.ServerOptions(retrier.ServerOptions(
					interceptor.IncomingCriticality(policy.CriticalityCritical), interceptor.Refuse(make(floor, mixedWorkers).take(m.sheds, requests)))...))
				server.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					return testserver.OK(&emptypb.Empty{}).Delay(random.around(float64(mixedTime)))
				}))
			}
			conns = append(conns, server.Dial(t, retrier.DialOptions()...))
		}
		r = mixedResult{calls: map[policy.Criticality]int{}, succeeded: map[policy.Criticality]int{}}
		var mu sync.Mutex
		var running sync.WaitGroup
		each := float64(mixedTime) / mixedWorkers / m.load
		for start := time.Now(); time.Since(start) < mixedFor; time.Sleep(random.around(each)) {
			c, conn := policy.CriticalityCritical, conns[int(random.part()*float64(len(conns)))]
			if random.part() < m.sheddable {
				c = policy.CriticalitySheddable
			}
			running.Go(func() {
				err := conn.Invoke(interceptor.ContextWithCriticality(t.Context(), c), mixedMethod, &emptypb.Empty{}, &emptypb.Empty{})
				mu.Lock()
				defer mu.Unlock()
				if r.calls[c]++; err == nil {
					r.succeeded[c]++
				}
			})
		}
		running.Wait()
		r.requests = float64(requests.Load()) / float64(r.calls[policy.CriticalityCritical]+r.calls[policy.CriticalitySheddable])
	})
	return r
}

// Servers that shed by criticality keep the important calls at any load; clients alone keep fewer.
//
//	go test ./storm -run Criticality -v -args -grid .
func TestCriticality(t *testing.T) {
	const least = 99.4 // %
	for _, load := range []struct{ times, sheddable float64 }{{1.5, 0.5}, {3, 0.75}} {
		for _, processes := range []int{1, 10, 100} {
			for _, row := range []struct {
				name      string
				sheds     bool
				admission policy.Admission
			}{
				{"neither", false, policy.AdmissionNone},
				{"servers shed", true, policy.AdmissionNone},
				{"client admission alone", false, policy.AdmissionRefuse},
				{"both", true, policy.AdmissionRefuse},
			} {
				if *grid == "" && (!row.sheds || row.admission == policy.AdmissionRefuse) {
					continue
				}
				t.Run(fmt.Sprintf("%v times, %d processes, %s", load.times, processes, row.name), func(t *testing.T) {
					t.Parallel()
					r := mixedLoad{load.times, load.sheddable, processes, row.sheds, row.admission}.play(t)
					t.Logf("%s: CRITICAL %.2f %% of %d, SHEDDABLE %.2f %% of %d, %.3f requests a call", t.Name(), r.part(policy.CriticalityCritical),
						r.calls[policy.CriticalityCritical], r.part(policy.CriticalitySheddable), r.calls[policy.CriticalitySheddable], r.requests)
					if got := r.part(policy.CriticalityCritical); row.sheds && got < least {
						t.Errorf("%.2f %% of the CRITICAL calls succeed; want %v %%", got, least)
					}
				})
			}
		}
	}
}
