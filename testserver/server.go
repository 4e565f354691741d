// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// Server is a gRPC server that follows its scripts. All its methods are safe for concurrent use, even while calls are running.
type Server struct {
	name    string
	tb      testing.TB // nil for a server made by New
	lis     *listener
	mem     *bufconn.Listener // nil for a server on a network
	grpc    *grpc.Server
	served  chan struct{} // closed when grpc.Serve has returned
	close   func()
	observe []func(Attempt)
	record  record
	scripts scripts
	begins  sync.RWMutex // a call holds it while it begins, so that it finds the scripts and the record of one moment
}

// started numbers the servers of this process, so that each has its own target.
var started atomic.Int64

// Start starts a server that stops when the test ends, after the connections made with
// [Server.Dial]. An error in the options ends the test.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(s.Close)
	return s
}

// New starts a server for a program, which must call [Server.Close]. The error is that of an
// invalid option or of listening.
func New(opts ...Option) (*Server, error) {
	cfg := settings{keep: keepAll}
	errs := make([]error, len(opts))
	for i, opt := range opts {
		if opt.apply == nil {
			errs[i] = fmt.Errorf("testserver: option %d is empty", i)
			continue
		}
		errs[i] = opt.apply(&cfg)
	}
	if err := errors.Join(errs...); err != nil {
		if cfg.listener != nil {
			err = errors.Join(err, cfg.listener.Close())
		}
		return nil, err
	}
	s := &Server{name: fmt.Sprintf("testserver-%d", started.Add(1)), observe: cfg.observe, served: make(chan struct{})}
	s.record.keep = cfg.keep
	s.listen(cfg.listener)
	s.grpc = grpc.NewServer(append(cfg.server,
		grpc.ForceServerCodecV2(codec{}),
		grpc.UnknownServiceHandler(s.handle),
		grpc.WaitForHandlers(true))...)
	for _, register := range cfg.register {
		register(s.grpc)
	}
	s.close = sync.OnceFunc(func() {
		s.grpc.Stop()
		<-s.served
	})
	go func() {
		defer close(s.served)
		_ = s.grpc.Serve(s.lis) // ends when Close stops it
	}()
	return s, nil
}

func (s *Server) listen(network net.Listener) {
	if network == nil {
		s.mem = bufconn.Listen(bufferSize)
		network = s.mem
	}
	s.lis = &listener{Listener: network, open: map[*connection]struct{}{}}
}

// bufferSize is the buffer of an in-memory connection in each direction, in bytes.
const bufferSize = 64 << 10

// Close cuts all connections, stops the server and waits until its handlers have returned. It may
// be called more than once. Close ClientConns first, or they try to reconnect.
func (s *Server) Close() { s.close() }

// Down cuts all connections and refuses new ones until [Server.Up]: running calls end with
// UNAVAILABLE, and new ones never leave the client. It has no effect if the server is down already.
func (s *Server) Down() { s.lis.setDown(true) }

// Up undoes [Server.Down]. Clients reconnect after their connection backoff, or
// immediately after grpc.ClientConn.ResetConnectBackoff.
func (s *Server) Up() { s.lis.setDown(false) }

// dial opens a connection to the server.
func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	if s.mem == nil {
		var d net.Dialer
		return d.DialContext(ctx, s.lis.Addr().Network(), s.lis.Addr().String())
	}
	if s.lis.isDown() {
		return nil, fmt.Errorf("testserver: %s is down", s.name)
	}
	dialing.Lock()
	defer dialing.Unlock()
	return s.mem.DialContext(ctx)
}

// dialing serializes in-memory dials. A bufconn pipe starts timers that fire immediately, and
// in Go 1.26 two such timers of one synctest bubble crash the race detector: they share its context.
var dialing sync.Mutex
