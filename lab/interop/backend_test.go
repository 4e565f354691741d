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
	getOrder    = "/interop.v1.OrderService/GetOrder"    // declared idempotent by name
	createOrder = "/interop.v1.OrderService/CreateOrder" // not declared idempotent
	watchOrders = "/interop.v1.OrderService/WatchOrders" // a server stream; declared idempotent by name
)

// watched is the number of messages in a whole stream of watchOrders: the numbers from 0, or from the request's.
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

// repeated returns how many requests whose text has this prefix ran more than once.
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

// backend is a gRPC server on a loopback port, which can be stopped and restarted.
type backend struct {
	port   int
	work   time.Duration // time of a request
	ledger *ledger
	maxAge time.Duration // of a connection; 0 for none

	mu     sync.Mutex
	server *grpc.Server
}

// startBackend starts a server that stops when the test ends.
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
	go func() { _ = server.Serve(lis) }() // returns an
}

func (b *backend) current() *grpc.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// kill closes the listener and all connections at once, with running calls.
func (b *backend) Kill() { b.current().Stop() }

// drain stops like a rollout: GOAWAY, then the end after all calls are answered.
func (b *backend) drain() { b.current().GracefulStop() }

// watch sends the numbers from the first, each after the backend's work.
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

// handle answers any unary method with its request. Its effect happens at the start: a client that leaves later does not
// undo it.
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
