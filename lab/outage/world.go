// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/testserver"
)

// world has the services of a scenario and their callers, for one client.
type world struct {
	scenario *sim.Scenario
	client   *Client
	users    []*link    // of each fleet
	services []*service // each before its callers
	links    []*link
}

// service is a group of equal backends.
type service struct {
	spec    *sim.Service
	servers []*testserver.Server
	queues  []*faults.Queue
	calls   []*link
	conns   int // from processes
}

// link is the connections to a service: of a service that calls it, or of all processes of the users.
type link struct {
	call  *sim.Call
	to    *service
	conns []*grpc.ClientConn

	mu     sync.Mutex // guards random
	random *rand.Rand
}

// newWorld starts the services and connects their callers.
func newWorld(ctx context.Context, s *sim.Scenario, c *Client) (*world, error) {
	w := &world{scenario: s, client: c}
	if err := w.connectUsers(ctx); err != nil {
		w.closeAll()
		return nil, err
	}
	for _, s := range w.services {
		for _, server := range s.servers {
			server.Reset() // forget the warm-up
		}
	}
	return w, nil
}

func (w *world) connectUsers(ctx context.Context) error {
	for i := range w.scenario.Fleets {
		f := &w.scenario.Fleets[i]
		l, err := w.link(ctx, &f.Calls[0])
		if err != nil {
			return err
		}
		w.users = append(w.users, l)
		for range max(w.client.Processes, f.Clients, 1) {
			options, err := w.client.Options()
			if err != nil {
				return err
			}
			if err := w.dial(ctx, l, options.Dial); err != nil {
				return err
			}
		}
	}
	return nil
}

// serviceNamed returns a service by its name. It starts the service if necessary, after those that the service calls.
func (w *world) serviceNamed(ctx context.Context, name string) (*service, error) {
	for _, s := range w.services {
		if s.spec.Name == name {
			return s, nil
		}
	}
	i := slices.IndexFunc(w.scenario.Services, func(s sim.Service) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("outage: no service is named %q", name)
	}
	s := &service{spec: &w.scenario.Services[i]}
	var options Options
	if len(s.spec.Calls) > 0 {
		var err error
		if options, err = w.client.Options(); err != nil {
			return nil, err
		}
	}
	for i := range s.spec.Calls {
		l, err := w.link(ctx, &s.spec.Calls[i])
		if err != nil {
			return nil, err
		}
		if err := w.dial(ctx, l, options.Dial); err != nil {
			return nil, err
		}
		s.calls = append(s.calls, l)
	}
	w.services = append(w.services, s)
	return s, s.startServers(options.Server)
}

func (s *service) startServers(options []grpc.ServerOption) error {
	config := faults.QueueConfig{
		Workers: s.spec.Workers, Time: s.spec.Time.Mean(), Length: s.spec.Queue,
		Refuse: s.spec.Refuse, DropAbandoned: s.spec.Abandoned == sim.AbandonedDrop,
	}
	for i := range s.spec.Backends {
		if s.spec.Time.Shape != sim.ShapeFixed {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			config.Draw = func() time.Duration { return s.spec.Time.Sample(random) }
		}
		q, err := faults.NewQueue(config)
		if err != nil {
			return fmt.Errorf("outage: %s: %w", s.spec.Name, err)
		}
		server, err := testserver.New(testserver.ServerOptions(options...))
		if err != nil {
			return err
		}
		s.servers, s.queues = append(s.servers, server), append(s.queues, q)
	}
	return nil
}

// link prepares the caller of a call, without connections yet.
func (w *world) link(ctx context.Context, call *sim.Call) (*link, error) {
	to, err := w.serviceNamed(ctx, call.Service)
	if err != nil {
		return nil, err
	}
	l := &link{call: call, to: to, random: rand.New(rand.NewPCG(0, 3))}
	w.links = append(w.links, l)
	return l, nil
}

// dial connects a process with a service. It waits for all connections, so that the first call needs none.
func (w *world) dial(ctx context.Context, l *link, options []grpc.DialOption) error {
	for range cmp.Or(w.client.Connections, l.call.Connections, 1) {
		conn, err := testserver.DialAll(l.to.servers, options...)
		if err != nil {
			return err
		}
		l.conns = append(l.conns, conn)
		if err := l.to.warmUp(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// warmUpMethod has no policy, unless an entry is for all methods, so that its calls earn no extra attempts.
const warmUpMethod = "/stagger.outage.WarmUp/Connect"

// warmUp makes calls until conn, which is new, is connected to every backend.
func (s *service) warmUp(ctx context.Context, conn *grpc.ClientConn) error {
	s.conns++
	fromConn := func(a testserver.Attempt) bool { return a.Conn >= s.conns }
	for _, server := range s.servers {
		for !slices.ContainsFunc(server.Attempts(), fromConn) {
			err := conn.Invoke(ctx, warmUpMethod, &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
			if err != nil {
				return fmt.Errorf("outage: the first call to %s: %w", s.spec.Name, err)
			}
		}
	}
	return nil
}

// pickConn draws one of the connections, and thereby a process.
func (l *link) pickConn() *grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[l.random.IntN(len(l.conns))]
}

// invoke makes a service's call for one of its requests.
func (l *link) invoke(ctx context.Context) error {
	if l.call.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.call.Deadline)
		defer cancel()
	}
	return l.pickConn().Invoke(ctx, l.call.Method, &emptypb.Empty{}, &emptypb.Empty{})
}

// enterPhase begins a phase.
func (w *world) enterPhase(p *sim.Phase) error {
	for _, s := range w.services {
		if err := s.applyFaults(p); err != nil {
			return err
		}
	}
	return nil
}

// requests returns the arrivals at each service, in the order of the scenario.
func (w *world) requests(start time.Time) [][]Request {
	lists := make([][]Request, len(w.scenario.Services))
	for _, s := range w.services {
		i := slices.IndexFunc(w.scenario.Services, func(spec sim.Service) bool { return spec.Name == s.spec.Name })
		for _, server := range s.servers {
			for _, a := range server.Attempts() {
				lists[i] = append(lists[i], Request{a, a.Time.Sub(start)})
			}
		}
	}
	return lists
}

// closeAll stops callers before the services that they call. It may be called again.
func (w *world) closeAll() {
	for _, s := range slices.Backward(w.services) {
		for _, l := range w.links {
			if l.to == s {
				l.closeConns()
			}
		}
		for _, server := range s.servers {
			server.Close()
		}
	}
}

func (l *link) closeConns() {
	for _, c := range l.conns {
		_ = c.Close()
	}
}
