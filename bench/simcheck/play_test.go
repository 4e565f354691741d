// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simcheck

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/testserver"
)

// played plays a scenario over real gRPC in memory, in virtual time.
func played(t *testing.T, s *sim.Scenario, v sim.Variant) figures {
	t.Helper()
	p := &player{scenario: s, variant: v, services: map[string]*service{}, chance: rand.New(rand.NewPCG(s.Seed, 5))}
	for i := range s.Services {
		p.start(t, &s.Services[len(s.Services)-1-i]) // who is called before who calls
	}
	users := &s.Fleets[0]
	conn := p.dial(t, users.Name, &users.Call)
	synctest.Wait()
	for _, sv := range p.services {
		for _, b := range sv.servers {
			b.Reset()
		}
	}
	start := time.Now()
	u := &usage{conn: conn, call: &users.Call}
	arrivals := rand.New(rand.NewPCG(s.Seed, 0)) // as the simulator draws them
	var end time.Duration
	for _, phase := range s.Phases {
		p.enter(phase)
		begin := end
		if end += phase.Length; phase.Kind == sim.Lead {
			u.lead = end
		}
		for at := begin; ; {
			at += time.Duration(arrivals.ExpFloat64() / (users.Rate * phase.Load) * float64(time.Second))
			if at >= end {
				break
			}
			sleep(start.Add(at))
			u.running.Go(func() { u.invoke(t.Context(), at) })
		}
		sleep(start.Add(end))
	}
	u.running.Wait()
	n := float64(u.all.Load())
	return figures{float64(u.ok.Load()) / n, float64(p.requests(start.Add(u.lead))) / n}
}

// usage is what becomes of the users' calls.
type usage struct {
	conn    *grpc.ClientConn
	call    *sim.Call
	lead    time.Duration // calls before are not counted
	running sync.WaitGroup
	all, ok atomic.Int64
}

func (u *usage) invoke(ctx context.Context, at time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, u.call.Deadline)
	defer cancel()
	err := u.conn.Invoke(ctx, u.call.Method, &emptypb.Empty{}, &emptypb.Empty{})
	if at < u.lead {
		return
	}
	u.all.Add(1)
	if err == nil {
		u.ok.Add(1)
	}
}

// requests is how many have arrived at the last service since a time.
func (p *player) requests(from time.Time) int {
	n := 0
	for _, b := range p.services[p.scenario.Services[len(p.scenario.Services)-1].Name].servers {
		for _, a := range b.Attempts() {
			if !a.Time.Before(from) {
				n++
			}
		}
	}
	return n
}

func sleep(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	<-timer.C
}

// player has what a scenario is played with.
type player struct {
	scenario *sim.Scenario
	variant  sim.Variant
	services map[string]*service
	chance   *rand.Rand
	mu       sync.Mutex
}

type service struct {
	spec    *sim.Service
	servers []*testserver.Server
	queues  []*testserver.Queue
	below   *grpc.ClientConn // to the service that it calls
}

// start starts a service, with the chain guard.
func (p *player) start(t *testing.T, spec *sim.Service) {
	t.Helper()
	sv := &service{spec: spec}
	p.services[spec.Name] = sv
	guard, err := interceptor.New(nil, interceptor.FromServiceConfig())
	if err != nil {
		t.Fatal(err)
	}
	for range spec.Backends {
		// The test server serves its methods as streams.
		sv.servers = append(sv.servers, testserver.Start(t, testserver.ServerOptions(grpc.ChainStreamInterceptor(guard.StreamServer()))))
		sv.queues = append(sv.queues, testserver.NewQueue(spec.Workers, spec.Time.Mean(), spec.Queue))
	}
	if len(spec.Calls) > 0 {
		sv.below = p.dial(t, spec.Name, &spec.Calls[0])
	}
	p.well(sv)
}

// dial connects to a service, as one process with the policy of the variant.
func (p *player) dial(t *testing.T, from string, c *sim.Call) *grpc.ClientConn {
	t.Helper()
	to := p.services[c.Service]
	options := []grpc.DialOption{grpc.WithDisableRetry()}
	name := cmp.Or(p.variant.Policies[from], p.variant.All, c.Policy)
	if set := p.scenario.Policies[name]; set != nil {
		retrier, err := interceptor.New(set, interceptor.WithRandom(p.random))
		if err != nil {
			t.Fatal(err)
		}
		options = retrier.DialOptions()
	}
	conn, err := testserver.DialAll(to.servers, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for _, b := range to.servers {
		b.On("/warm.Up/Connect", testserver.OK())
		for len(b.Attempts()) == 0 { // until the balancer goes round all of them
			if err := conn.Invoke(t.Context(), "/warm.Up/Connect", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return conn
}

func (p *player) random() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chance.Float64()
}

// enter makes the backends what they are in a phase.
func (p *player) enter(phase sim.Phase) {
	for _, sv := range p.services {
		p.well(sv)
	}
	for _, f := range phase.Faults {
		sv := p.services[f.Service]
		list := f.Backends
		for i := range sv.servers {
			if len(f.Backends) == 0 {
				list = append(list, i)
			}
		}
		for _, i := range list {
			sv.servers[i].On(p.method(), ill(f, i, sv.queues[i]))
		}
	}
}

func (p *player) method() string { return p.scenario.Fleets[0].Call.Method }

// well is a service without trouble.
func (p *player) well(sv *service) {
	for i, b := range sv.servers {
		step := testserver.OK()
		if sv.below != nil {
			step = testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
				if err := sv.below.Invoke(ctx, sv.spec.Calls[0].Method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					return testserver.FailStatus(status.Convert(err))
				}
				return testserver.OK()
			})
		}
		b.On(p.method(), step.Through(sv.queues[i]))
	}
}

// ill is what a backend does with a fault.
func ill(f sim.Fault, i int, queue *testserver.Queue) testserver.Step {
	seed := uint64(i)
	switch {
	case f.Down:
		return testserver.Fail(f.Code)
	case f.Hang:
		return testserver.Hang()
	case f.Slow != nil:
		return testserver.Random(seed, f.Slow.Part, testserver.OK().Delay(f.Slow.By.Mean())).Through(queue)
	default:
		return testserver.Random(seed, f.Flaky, testserver.Fail(f.Code)).Through(queue)
	}
}
