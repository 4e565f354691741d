// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/proctest"
)

const (
	getOrder    = "/interop.v1.OrderService/GetOrder"    // declared safe by name
	createOrder = "/interop.v1.OrderService/CreateOrder" // nobody declares it safe
	watchOrders = "/interop.v1.OrderService/WatchOrders" // a server stream; declared safe by name
)

// watched is how many messages a whole stream of watchOrders has: the numbers from 0, or from the request's.
const watched = 30

// ledger counts how often the handler of each request has run, on all backends.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int // by the request's text
}

func newLedger() *ledger { return &ledger{runs: map[string]int{}} }

func (l *ledger) run(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[request]++
}

// repeated is how many requests whose text begins so ran more than once.
func (l *ledger) repeated(prefix string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for request, runs := range l.runs {
		if runs > 1 && strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// ran reports whether the request's handler ran.
func (l *ledger) ran(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[request] > 0
}

// backend is a gRPC server on a port of loopback, which can be stopped and started again.
type backend struct {
	port   int
	work   time.Duration // that a request takes
	ledger *ledger
	maxAge time.Duration // of a connection; 0 for none

	mu     sync.Mutex
	server *grpc.Server
}

// startBackend starts a server that ends with the test.
func startBackend(t *testing.T, l *ledger, work, maxAge time.Duration) *backend {
	t.Helper()
	b := &backend{port: proctest.Port(t), work: work, ledger: l, maxAge: maxAge}
	b.start(t)
	t.Cleanup(b.Kill)
	return b
}

// start serves on the backend's port.
func (b *backend) start(t *testing.T) {
	t.Helper()
	var lis net.Listener
	await(t, 5*time.Second, "the port is free again", func() (free bool) {
		var err error
		lis, err = net.Listen("tcp", address(b.port))
		return err == nil
	})
	opts := []grpc.ServerOption{grpc.UnknownServiceHandler(b.handle)}
	if b.maxAge > 0 {
		opts = append(opts, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: b.maxAge, MaxConnectionAgeGrace: 5 * time.Second}))
	}
	server := grpc.NewServer(opts...)
	b.mu.Lock()
	b.server = server
	b.mu.Unlock()
	go func() { _ = server.Serve(lis) }() // it ends with an error when it is killed
}

func (b *backend) current() *grpc.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// kill closes listener and connections at once, whatever runs.
func (b *backend) Kill() { b.current().Stop() }

// drain stops as a rollout does: GOAWAY, then the end when all calls are answered.
func (b *backend) drain() { b.current().GracefulStop() }

// watch sends the numbers from the first, with the backend's work before each.
func (b *backend) watch(first string, stream grpc.ServerStream) error {
	n, err := strconv.Atoi(first)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "%q: want a number", first)
	}
	tick := time.NewTicker(b.work)
	defer tick.Stop()
	for ; n < watched; n++ {
		if err := stream.SendMsg(wrapperspb.String(strconv.Itoa(n))); err != nil {
			return err
		}
		<-tick.C
	}
	return nil
}

// handle answers any unary method with its request. What it does has happened when it begins: a client that goes
// away later does not undo it.
func (b *backend) handle(_ any, stream grpc.ServerStream) error {
	m := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	b.ledger.run(m.GetValue())
	if method, _ := grpc.MethodFromServerStream(stream); method == watchOrders {
		return b.watch(m.GetValue(), stream)
	}
	timer := time.NewTimer(b.work)
	defer timer.Stop()
	<-timer.C
	return stream.SendMsg(m)
}
