// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/testserver"
)

// fleet is the backends of one contender, and its connection to them.
type fleet struct {
	servers []*testserver.Server
	queues  []*testserver.Queue
	conn    *grpc.ClientConn
}

// startFleet starts servers and connects to all of them.
func startFleet(ctx context.Context, s shape, options []grpc.DialOption) (*fleet, error) {
	f := &fleet{}
	for range s.backends {
		server, err := testserver.New()
		if err != nil {
			f.close()
			return nil, err
		}
		f.servers = append(f.servers, server)
		f.queues = append(f.queues, testserver.NewQueue(s.workers, s.service, s.queue))
	}
	conn, err := testserver.DialAll(f.servers, options...)
	if err != nil {
		f.close()
		return nil, err
	}
	f.conn = conn
	if err := f.warmUp(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// warmUp calls until every server is connected, and lets them forget it.
func (f *fleet) warmUp(ctx context.Context) error {
	for _, s := range f.servers {
		for s.Count("*") == 0 {
			err := f.conn.Invoke(ctx, orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
			if err != nil {
				return fmt.Errorf("demo: the first call to the servers: %w", err)
			}
		}
	}
	for _, s := range f.servers {
		s.Reset()
	}
	return nil
}

// enter begins a phase.
func (f *fleet) enter(p phase) error {
	for i, s := range f.servers {
		step := testserver.OK().Through(f.queues[i])
		if i < p.ill {
			step = ill()
		}
		s.On(everyMethod, step)
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

var everyMethod = orders.GetOrder[:strings.LastIndex(orders.GetOrder, "/")] + "/*"

// attempts is what arrived at the servers; complete only after close.
func (f *fleet) attempts() []testserver.Attempt {
	var all []testserver.Attempt
	for _, s := range f.servers {
		all = append(all, s.Attempts()...)
	}
	return all
}

func (f *fleet) close() {
	if f.conn != nil {
		_ = f.conn.Close()
	}
	for _, s := range f.servers {
		s.Close()
	}
}

// carriedOut reports whether the server did the work of an attempt. One whose client went away
// kept its place in the queue, and was served all the same; one whose request never came had nothing to
// be done.
func carriedOut(a *testserver.Attempt) bool {
	return a.Received > 0 && (a.Code == codes.OK || a.Cancelled)
}
