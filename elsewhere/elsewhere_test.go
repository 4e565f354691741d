// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	lb "google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/grpctest"
	"github.com/stagger-go/stagger/testserver"
)

const get = "/acme.orders.v1.OrderService/GetOrder"

// around returns a service config with the policy around a leaf policy.
func around(leaf string) string {
	return fmt.Sprintf(`{"loadBalancingConfig": [{%q: {"childPolicy": [{%q: {}}]}}]}`, elsewhere.Name, leaf)
}

var (
	roundRobin   = around("round_robin")
	leastRequest = around("least_request_experimental")
)

// retrying retries until a call succeeds, with at most so many attempts and the record that an interceptor makes.
func retrying(attempts int) grpc.DialOption {
	return grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx = elsewhere.NewContext(ctx)
		var err error
		for range attempts {
			if err = attempt(ctx, method, req, reply, cc, invoker, opts); err == nil {
				return nil
			}
		}
		return err
	})
}

// attempt gives an attempt its own context, as interceptors do that cancel attempts.
func attempt(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts []grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return invoker(ctx, method, req, reply, cc, opts...)
}

// hedging sends all attempts at once, and returns the first success.
func hedging(attempts int) grpc.DialOption {
	return grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, _ any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, cancel := context.WithCancel(elsewhere.NewContext(ctx))
		errs := make(chan error, attempts)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for range attempts {
			wg.Go(func() { errs <- attempt(ctx, method, req, &emptypb.Empty{}, cc, invoker, opts) })
		}
		var err error
		for range attempts {
			if err = <-errs; err == nil {
				return nil
			}
		}
		return err
	})
}

func call(ctx context.Context, b *grpctest.Backends) error {
	return b.Conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{})
}

// play runs a test in virtual time, with n backends that have each served a call.
func play(t *testing.T, n int, config string, test func(t *testing.T, b *grpctest.Backends), options ...grpc.DialOption) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := grpctest.Start(t, n, config, options...)
		b.VisitAll(t, func() error { return call(t.Context(), b) })
		synctest.Wait() // for cancelled hedges that are still arriving
		b.Visits()
		test(t, b)
	})
}

func failAt(b *grpctest.Backends, backends ...int) {
	for _, i := range backends {
		b.Servers[i].On("*", testserver.Fail(codes.Unavailable))
	}
}

var all = []int{0, 1, 2, 3}

func TestRetryGoesToAnotherBackend(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{"round_robin": roundRobin, "least_request": leastRequest} {
		t.Run(name+"/one fails", func(t *testing.T) {
			play(t, 4, config, func(t *testing.T, b *grpctest.Backends) {
				failAt(b, 2)
				failed := 0
				for range 200 {
					testkit.NoError(t, call(t.Context(), b))
					visits := b.Visits()
					if visits[0] == 2 {
						failed++
					}
					if len(visits) == 2 && visits[0] != 2 || len(visits) > 2 {
						t.Fatalf("a call went to %v, want one retry after 2", visits)
					}
				}
				if failed == 0 {
					t.Error("no call went to the backend that fails")
				}
			}, retrying(2))
		})
		t.Run(name+"/all fail", func(t *testing.T) {
			play(t, 4, config, func(t *testing.T, b *grpctest.Backends) {
				failAt(b, all...)
				if err := call(t.Context(), b); status.Code(err) != codes.Unavailable {
					t.Errorf("error %v, want UNAVAILABLE", err)
				}
				visits := b.Visits()
				if len(visits) != 9 || !slices.Equal(slices.Sorted(slices.Values(visits[:4])), all) ||
					!slices.Equal(visits[:4], visits[4:8]) || visits[8] != visits[0] {
					t.Errorf("visited %v, want all, and then again in the same order", visits)
				}
			}, retrying(9))
		})
		t.Run(name+"/hedges that start together part", func(t *testing.T) {
			play(t, 4, config, func(t *testing.T, b *grpctest.Backends) {
				for _, s := range b.Servers {
					s.On("*", testserver.Hang())
				}
				b.Servers[3].On("*", testserver.OK().Delay(time.Second))
				for range 20 {
					testkit.NoError(t, call(t.Context(), b))
					synctest.Wait()
					if visits := b.Visits(); !slices.Equal(slices.Sorted(slices.Values(visits)), all) {
						t.Fatalf("four hedges went to %v, want to four backends", visits)
					}
				}
			}, hedging(4))
		})
	}
}

func TestBackendStaysTheSameWhenItReconnects(t *testing.T) {
	// begin starts a call that hangs on a backend until it is cancelled.
	begin := func(ctx context.Context, b *grpctest.Backends) (backend int, end func()) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { _ = call(ctx, b) })
		synctest.Wait()
		return b.Visits()[0], func() { cancel(); wg.Wait() }
	}
	play(t, 2, roundRobin, func(t *testing.T, b *grpctest.Backends) {
		for _, s := range b.Servers {
			s.On("*", testserver.Hang())
		}
		ctx := elsewhere.NewContext(t.Context())
		first, end := begin(ctx, b)
		defer end()
		b.Servers[first].Down()
		b.Servers[first].Up()
		time.Sleep(time.Minute) // it reconnects
		for range 10 {
			second, end := begin(ctx, b)
			if second != 1-first {
				t.Fatalf("visited %d, %d; want another", first, second)
			}
			end()
			ctx = elsewhere.NewContext(t.Context())
			first, end = begin(ctx, b)
			end()
		}
	})
}

func TestChannelLeavesIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := grpctest.Start(t, 4, roundRobin, grpc.WithIdleTimeout(time.Minute), retrying(4))
		want := func(state connectivity.State) {
			t.Helper()
			synctest.Wait()
			if got := b.Conn.GetState(); got != state {
				t.Errorf("state %v; want %v", got, state)
			}
		}
		want(connectivity.Idle)
		b.Conn.Connect()
		want(connectivity.Ready)
		time.Sleep(3 * time.Minute)
		want(connectivity.Idle)
		failAt(b, all...)
		_ = call(t.Context(), b)
		want(connectivity.Ready)
		time.Sleep(time.Second)
		b.Visits()
		_ = call(t.Context(), b)
		if visits := b.Visits(); !slices.Equal(slices.Sorted(slices.Values(visits)), all) {
			t.Errorf("four attempts went to %v, want to four backends", visits)
		}
		_ = b.Conn.Close()
		want(connectivity.Shutdown)
	})
}

var counted = map[string]*grpctest.Picks{
	"round_robin":                grpctest.Count("round_robin"),
	"least_request_experimental": grpctest.Count("least_request_experimental"),
	"pick_first":                 grpctest.Count("pick_first"),
}

// Backends come, go, fail and break their connections while calls retry and hedge.
func TestChurn(t *testing.T) {
	t.Parallel()
	for leaf, picks := range counted {
		t.Run(leaf, func(t *testing.T) {
			t.Parallel()
			grpctest.Churn(t, around("counted_"+leaf), around("round_robin"), elsewhere.NewContext)
			if picked, done, twice := picks.Picked.Load(), picks.Done.Load(), picks.Twice.Load(); picked == 0 ||
				done != picked || twice != 0 {
				t.Errorf("%d picks, %d of them done, %d again; want each once", picked, done, twice)
			}
		})
	}
}

// inTurn is a policy that has a connection for each address of the resolver, also for those that are the same but for attributes.
const inTurn = "in_turn"

func init() { lb.Register(base.NewBalancerBuilder(inTurn, inTurnPickers{}, base.Config{})) }

type inTurnPickers struct{}

func (inTurnPickers) Build(info base.PickerBuildInfo) lb.Picker {
	if len(info.ReadySCs) == 0 {
		return base.NewErrPicker(lb.ErrNoSubConnAvailable)
	}
	return &inTurnPicker{conns: slices.Collect(maps.Keys(info.ReadySCs))}
}

type inTurnPicker struct {
	conns []lb.SubConn
	next  atomic.Uint32
}

func (p *inTurnPicker) Pick(lb.PickInfo) (lb.PickResult, error) {
	return lb.PickResult{SubConn: p.conns[int(p.next.Add(1))%len(p.conns)]}, nil
}

// Of several connections to one server, each counts as a backend: the attempts of a call go to different ones, and reach the other
// server in the end. (gRFC A105 hides them behind one SubConn, which is then one backend.)
func TestSeveralConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := grpctest.Start(t, 2, around(inTurn), retrying(4))
		b.Resolve("", 0, 0, 0, 1)
		call := func() error { return b.Conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}) }
		b.VisitAll(t, call)
		time.Sleep(time.Second)
		b.Servers[0].On("*", testserver.Fail(codes.Unavailable))
		most := 0
		for range 100 {
			b.Servers[0].Reset()
			if err := call(); err != nil {
				t.Fatalf("%v after attempts at %v", err, b.Visits())
			}
			conns := map[int]bool{}
			for _, a := range b.Servers[0].Attempts() {
				if conns[a.Conn] {
					t.Errorf("two attempts on one of three connections: %v", b.Visits())
				}
				conns[a.Conn] = true
			}
			most = max(most, len(conns))
			b.Visits()
		}
		if most != 3 {
			t.Errorf("%d connections of the failing server are tried at most; want all three", most)
		}
	})
}
