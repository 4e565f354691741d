// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package grpctest is for tests of load balancing in testing/synctest bubbles: it has in-memory backends behind one connection, which come and
// go as the test's resolver says, and policies whose picks are counted.
package grpctest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

// Backends are in-memory servers behind one connection.
type Backends struct {
	Servers []*testserver.Server
	Conn    *grpc.ClientConn

	resolver  *manual.Resolver
	listeners map[string]*bufconn.Listener
	dialing   sync.Mutex // serializes dials: two timers of a bubble that fire at the same time crash the race detector (see testserver)
	mu        sync.Mutex // guards visits
	visits    []int
}

// Start starts n backends, all of which the resolver names at first. They stop when the test ends. config is the
// connection's default service config.
func Start(tb testing.TB, n int, config string, options ...grpc.DialOption) *Backends {
	tb.Helper()
	b := &Backends{resolver: manual.NewBuilderWithScheme("lbtest"), listeners: map[string]*bufconn.Listener{}}
	all := make([]int, n)
	for i := range n {
		all[i] = i
		lis := bufconn.Listen(1 << 16)
		b.listeners[name(i)] = lis
		visits := testserver.Observe(func(a testserver.Attempt) { b.visit(i, a) })
		b.Servers = append(b.Servers, testserver.Start(tb, testserver.Listener(lis), visits))
	}
	b.Resolve("", all...)
	conn, err := grpc.NewClient("lbtest:///"+url.PathEscape(tb.Name()), append([]grpc.DialOption{
		grpc.WithResolvers(b.resolver),
		grpc.WithContextDialer(b.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(config),
	}, options...)...)
	if err != nil {
		tb.Fatal(err)
	}
	b.Conn = conn
	tb.Cleanup(func() { _ = conn.Close() })
	return b
}

func name(i int) string { return fmt.Sprintf("backend-%d", i) }

func (b *Backends) dial(ctx context.Context, addr string) (net.Conn, error) {
	b.dialing.Lock()
	defer b.dialing.Unlock()
	return b.listeners[addr].DialContext(ctx)
}

// Resolve makes the resolver return these backends and, unless it is empty, a service config.
func (b *Backends) Resolve(config string, backends ...int) {
	state := resolver.State{}
	for n, i := range backends {
		address := resolver.Address{Addr: name(i)}
		if slices.Contains(backends[:n], i) { // another connection, for policies that tell addresses apart by their attributes
			address.Attributes = attributes.New("connection", n)
		}
		state.Addresses = append(state.Addresses, address)
	}
	if config != "" {
		state.ServiceConfig = b.resolver.CC().ParseServiceConfig(config)
	}
	b.resolver.UpdateState(state)
}

// ReportError makes the resolver fail.
func (b *Backends) ReportError(err error) { b.resolver.CC().ReportError(err) }

func (b *Backends) visit(backend int, a testserver.Attempt) {
	if !a.End.IsZero() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.visits = append(b.visits, backend)
}

// Visits returns the backends of the attempts since the last time, in order of arrival.
func (b *Backends) Visits() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	visits := slices.Clone(b.visits)
	b.visits = nil
	return visits
}

// VisitAll makes calls until every backend has served one, and then forgets the visits.
func (b *Backends) VisitAll(tb testing.TB, call func() error) {
	tb.Helper()
	seen := map[int]bool{}
	for range 1000 {
		if err := call(); err != nil {
			tb.Fatal(err)
		}
		for _, i := range b.Visits() {
			seen[i] = true
		}
		if len(seen) == len(b.Servers) {
			return
		}
	}
	tb.Fatalf("after 1000 calls only backends %v were visited", seen)
}

const churnMethod = "/stagger.grpctest.Churn/Call"

// Churn plays some seconds of virtual time. Calls retry and hedge, backends come and go, fail, and break their connections,
// and the resolver fails or returns one of the two configs. Each call gets a context from newContext, and the connection
// gets the options too. Everything is closed when Churn returns.
func Churn(t *testing.T, config, other string, newContext func(context.Context) context.Context, options ...grpc.DialOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		params := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Millisecond, Multiplier: 1}}
		b := Start(t, 5, config, append(options, grpc.WithConnectParams(params))...)
		for i, s := range b.Servers {
			s.On("*", testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
				chance := rand.New(rand.NewPCG(uint64(i), uint64(a.Number)))
				delay := time.Duration(chance.IntN(int(5 * time.Millisecond)))
				switch p := chance.Float64(); {
				case p < 0.01:
					return testserver.Drop()
				case p < 0.2:
					return testserver.Fail(codes.Unavailable).Delay(delay)
				}
				return testserver.OK().Delay(delay)
			}))
		}
		over := make(chan struct{})
		var churn, load sync.WaitGroup
		churn.Go(func() { b.churn(over, config, other) })
		var good, bad atomic.Int64
		for worker := range 6 {
			load.Go(func() {
				for i := range 100 {
					if b.makeCall(t.Context(), newContext, (worker+i)%3 == 0) == nil {
						good.Add(1)
					} else {
						bad.Add(1)
					}
				}
			})
		}
		load.Wait()
		close(over)
		churn.Wait()
		if good.Load() < 4*bad.Load() {
			t.Errorf("%d calls succeeded, %d failed; want few failures with three attempts each", good.Load(), bad.Load())
		}
		if err := b.Conn.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// makeCall makes up to three attempts, all in parallel if it hedges.
func (b *Backends) makeCall(ctx context.Context, newContext func(context.Context) context.Context, hedge bool) error {
	ctx, cancel := context.WithTimeout(newContext(ctx), time.Second)
	defer cancel()
	attempt := func() error { return b.Conn.Invoke(ctx, churnMethod, &emptypb.Empty{}, &emptypb.Empty{}) }
	var err error
	if !hedge {
		for range 3 {
			if err = attempt(); err == nil {
				return nil
			}
		}
		return err
	}
	errs := make(chan error, 3)
	var wg sync.WaitGroup
	defer wg.Wait()
	for range cap(errs) {
		wg.Go(func() { errs <- attempt() })
	}
	for range cap(errs) {
		if err = <-errs; err == nil {
			cancel()
			return nil
		}
	}
	return err
}

// churn changes something every other millisecond. Backend 0 always stays.
func (b *Backends) churn(over <-chan struct{}, config, other string) {
	chance := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		backends := []int{0}
		for i := 1; i < len(b.Servers); i++ {
			if chance.IntN(2) == 0 {
				backends = append(backends, i)
			}
		}
		one := b.Servers[1+chance.IntN(len(b.Servers)-1)]
		switch chance.IntN(8) {
		case 0:
			b.Resolve(other, backends...)
		case 1:
			b.Resolve(config, backends...)
		case 2:
			b.ReportError(errors.New("no such host"))
		case 3:
			one.Down()
			one.Up()
		default:
			b.Resolve("", backends...)
		}
	}
}
