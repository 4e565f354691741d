// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

// chain is the services that the users of one contender depend on. The users call the first, each
// service calls the next, and all of them and the users are equipped alike. A storm comes over the last.
type chain []*fleet

// startChain starts the services of a storm, from the last to the first, and connects each with the one
// before it, and the first with the users.
func startChain(ctx context.Context, s storm, c contender) (chain, error) {
	services := make(chain, s.depth())
	var below *fleet
	for i := len(services) - 1; i >= 0; i-- {
		up, err := c.equip(s.attemptTimeout) // whoever calls this service: the users, or the one before it
		if err != nil {
			services.close()
			return nil, err
		}
		var serve []grpc.ServerOption
		if below != nil {
			serve = below.serve
		}
		sh := s.shape()
		if below != nil {
			sh.workers *= 2 // so that the last is the narrow one
		}
		f, err := startFleet(ctx, sh, c.connections, up, serve...)
		if err != nil {
			services.close()
			return nil, err
		}
		services[i] = f
		if below != nil {
			if err := f.relay(s.method(), below); err != nil {
				services.close()
				return nil, err
			}
		}
		below = f
	}
	return services, nil
}

func (c chain) first() *fleet { return c[0] }

func (c chain) last() *fleet { return c[len(c)-1] }

// requests is when each request arrived at each service, from start.
func (c chain) requests(start time.Time) [][]time.Duration {
	lists := make([][]time.Duration, len(c))
	for i, f := range c {
		lists[i] = f.requests(start)
	}
	return lists
}

// close ends the services from the first to the last, so that none calls one that has gone.
func (c chain) close() {
	for _, f := range c {
		if f != nil {
			f.close()
		}
	}
}

// relay makes the servers of f do their work on each request and then call the service below in its
// context, and answer as that does.
func (f *fleet) relay(method string, below *fleet) error {
	for i, s := range f.servers {
		s.On(service+"*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			err := below.pick().Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
			if err != nil {
				return testserver.FailStatus(status.Convert(err))
			}
			return testserver.OK()
		}).Through(f.queues[i]))
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// picker draws connections, the same ones in every run as far as the calls come in the same order.
type picker struct {
	mu     sync.Mutex
	chance *rand.Rand
}

func newPicker() *picker {
	return &picker{chance: rand.New(rand.NewPCG(0, 3))} //nolint:gosec // a storm must repeat
}

// pick returns one of the connections to f.
func (f *fleet) pick() *grpc.ClientConn {
	f.picker.mu.Lock()
	defer f.picker.mu.Unlock()
	return f.conns[f.picker.chance.IntN(len(f.conns))]
}
