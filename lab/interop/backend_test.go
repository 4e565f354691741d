// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
)

const (
	getOrder    = "/interop.v1.OrderService/GetOrder"    // declared idempotent by name
	createOrder = "/interop.v1.OrderService/CreateOrder" // not declared idempotent
)

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

	mu     sync.Mutex
	server *grpc.Server
}

// startBackend starts a server that stops when the test ends.
func startBackend(t *testing.T, l *ledger, work time.Duration) *backend {
	t.Helper()
	b := &backend{port: testkit.Port(t), work: work, ledger: l}
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
	server := grpc.NewServer(grpc.UnknownServiceHandler(b.handle))
	b.mu.Lock()
	b.server = server
	b.mu.Unlock()
	go func() { _ = server.Serve(lis) }() // returns an error when the server is stopped
}

func (b *backend) current() *grpc.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// kill closes the listener and all connections at once, with running calls.
func (b *backend) Kill() { b.current().Stop() }

// handle answers any unary method with its request. Its effect happens at the start: a client that leaves later does not
// undo it.
func (b *backend) handle(_ any, stream grpc.ServerStream) error {
	m := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	b.ledger.run(m.GetValue())
	timer := time.NewTimer(b.work)
	defer timer.Stop()
	<-timer.C
	return stream.SendMsg(m)
}
