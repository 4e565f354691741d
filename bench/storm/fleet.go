// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

// fleet is the backends of a service, and the connections of its clients to them.
type fleet struct {
	serve   []grpc.ServerOption // of the clients' own servers, if they have any
	picker  *picker
	servers []*testserver.Server
	queues  []*testserver.Queue
	conns   []*grpc.ClientConn
}

// startFleet starts servers, and makes connections of clients that are equipped with up to all of them.
func startFleet(ctx context.Context, s shape, connections int, up gear, serve ...grpc.ServerOption) (*fleet, error) {
	f := &fleet{serve: up.serve, picker: newPicker()}
	if err := f.start(s, serve); err != nil {
		f.close()
		return nil, err
	}
	if err := f.connect(ctx, connections, up.dial); err != nil {
		f.close()
		return nil, err
	}
	for _, server := range f.servers {
		server.Reset()
	}
	return f, nil
}

func (f *fleet) start(s shape, serve []grpc.ServerOption) error {
	for range s.backends {
		server, err := testserver.New(testserver.ServerOptions(serve...))
		if err != nil {
			return err
		}
		f.servers = append(f.servers, server)
		f.queues = append(f.queues, testserver.NewQueue(s.workers, s.service, s.queue))
	}
	return nil
}

func (f *fleet) connect(ctx context.Context, connections int, options []grpc.DialOption) error {
	for range connections {
		conn, err := testserver.DialAll(f.servers, options...)
		if err != nil {
			return err
		}
		f.conns = append(f.conns, conn)
		if err := f.warmUp(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// warmUp calls until conn, the newest, is connected to every server. The policy file says nothing of
// the method, so the calls earn no extra attempts.
func (f *fleet) warmUp(ctx context.Context, conn *grpc.ClientConn) error {
	for _, s := range f.servers {
		for !reached(s, len(f.conns)) {
			err := conn.Invoke(ctx, service+"Connect", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
			if err != nil {
				return fmt.Errorf("storm: the first call to the servers: %w", err)
			}
		}
	}
	return nil
}

// reached reports whether a call has come over the server's n-th connection.
func reached(s *testserver.Server, n int) bool {
	return slices.ContainsFunc(s.Attempts(), func(a testserver.Attempt) bool { return a.Conn >= n })
}

// enter begins a phase.
func (f *fleet) enter(p phase) error {
	do := p.step
	if do == nil {
		do = well
	}
	for i, s := range f.servers {
		s.On(service+"*", do(i, f.queues[i]))
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// requests is when each request arrived at a server, from start.
func (f *fleet) requests(start time.Time) []time.Duration {
	var list []time.Duration
	for _, s := range f.servers {
		for _, a := range s.Attempts() {
			list = append(list, a.Time.Sub(start))
		}
	}
	return list
}

func (f *fleet) close() {
	for _, c := range f.conns {
		_ = c.Close()
	}
	for _, s := range f.servers {
		s.Close()
	}
}
