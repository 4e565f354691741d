// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lbtest is for tests of load balancing: backends in memory behind one connection, which come and go as the
// test's resolver says, and policies whose picks are counted. It works in a testing/synctest bubble.
package lbtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/testserver"
)

// Backends are servers in memory behind one connection.
type Backends struct {
	Servers []*testserver.Server
	Conn    *grpc.ClientConn

	resolver  *manual.Resolver
	listeners map[string]*bufconn.Listener
	mu        sync.Mutex
	visits    []int
}

// Start starts n backends, all of which the resolver names at first. All ends with the test. The config is the
// connection's default service config.
func Start(tb testing.TB, n int, config string, options ...grpc.DialOption) *Backends {
	tb.Helper()
	b := &Backends{resolver: manual.NewBuilderWithScheme("lbtest"), listeners: map[string]*bufconn.Listener{}}
	all := make([]int, n)
	for i := range n {
		all[i] = i
		lis := bufconn.Listen(1 << 16)
		b.listeners[name(i)] = lis
		b.Servers = append(b.Servers, testserver.Start(tb, testserver.Listener(lis), testserver.Observe(func(a testserver.Attempt) { b.visit(i, a) })))
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
	return b.listeners[addr].DialContext(ctx)
}

// Resolve makes the resolver name these backends, and deliver a service config unless it is empty.
func (b *Backends) Resolve(config string, backends ...int) {
	state := resolver.State{}
	for _, i := range backends {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: name(i)})
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

// Settle makes calls until every backend has served one, and forgets their visits.
func (b *Backends) Settle(tb testing.TB, call func() error) {
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
