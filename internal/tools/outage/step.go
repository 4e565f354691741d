// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/tools/queue"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/testserver"
)

// applyFaults gives the backends the faults of a phase. Running attempts end as they began.
func (s *service) applyFaults(p *sim.Phase) error {
	for i, server := range s.servers {
		f, workers := s.fault(p, i), s.spec.Workers
		if f != nil && f.Workers != nil {
			workers = min(workers, *f.Workers)
		}
		if err := s.queues[i].SetWorkers(workers); err != nil {
			return fmt.Errorf("outage: %s: %w", s.spec.Name, err)
		}
		server.On("*", s.stepOf(f, i))
	}
	return nil
}

// fault returns a backend's fault in a phase, or nil.
func (s *service) fault(p *sim.Phase, backend int) *sim.Fault {
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.Service == s.spec.Name && (len(f.Backends) == 0 || slices.Contains(f.Backends, backend)) {
			return f
		}
	}
	return nil
}

// stepOf returns how a backend answers each request: its work, then the calls to other services, unless it has a fault other
// than a lack of workers.
func (s *service) stepOf(f *sim.Fault, backend int) testserver.Step {
	if f != nil && f.Workers == nil {
		return faulty(f, uint64(backend), s.queues[backend])
	}
	if len(s.calls) == 0 {
		return s.queues[backend].Serve(testserver.OK())
	}
	return s.queues[backend].Serve(testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		for _, l := range s.calls {
			if err := l.invoke(ctx); err != nil {
				return testserver.FailStatus(status.Convert(err))
			}
		}
		return testserver.OK()
	}))
}

// faulty returns how a backend with a fault answers. Random numbers come from the seed.
func faulty(f *sim.Fault, seed uint64, q *queue.Queue) testserver.Step {
	switch {
	case f.Hang:
		return testserver.Hang()
	case f.Down:
		return failure(f)
	case f.Slow != nil:
		return q.Serve(testserver.Random(seed, f.Slow.Part, testserver.OK().Delay(f.Slow.By.Mean())))
	default:
		return q.Serve(testserver.Random(seed, f.Flaky, failure(f)))
	}
}

func failure(f *sim.Fault) testserver.Step {
	step := testserver.Fail(f.Code, "fault")
	if f.Pushback != nil {
		step = step.Pushback(strconv.FormatInt(f.Pushback.Milliseconds(), 10))
	}
	return step
}

// playable returns an error if only the simulator can run the scenario.
func playable(s *sim.Scenario) error {
	var errs []error
	refuse := func(is bool, what string) {
		if is {
			errs = append(errs, fmt.Errorf("outage: %s: %s; only the simulator can run that", s.Title, what))
		}
	}
	call := func(c *sim.Call) {
		refuse(c.Clients > 1 || c.Delay != nil || c.Loss > 0 || c.Work > 0 && c.Work != 1, "calls by several clients, on a network with delay or loss, or of unequal work")
	}
	refuse(len(s.Fleets) != 1 || s.Fleets[0].Clients > 1 || len(s.Fleets[0].Calls) != 1, "other users than one client with one kind of calls")
	for i := range s.Fleets {
		for k := range s.Fleets[i].Calls {
			call(&s.Fleets[i].Calls[k])
		}
	}
	calls := map[string]bool{}
	for i := range s.Services {
		v := &s.Services[i]
		calls[v.Name] = len(v.Calls) > 0
		refuse(v.Order != sim.OrderFIFO || v.Time.Shape != sim.ShapeFixed, "a service with another order, or times that vary")
		for k := range v.Calls {
			call(&v.Calls[k])
		}
	}
	for i := range s.Phases {
		for _, f := range s.Phases[i].Faults {
			refuse(f.Slower > 0 || f.Workers != nil && (f.Down || f.Hang || f.Flaky > 0 || f.Slow != nil) || calls[f.Service] && !f.Down && !f.Hang && f.Workers == nil,
				"a slower service, fewer workers with another fault, or a flaky or slow service that calls others")
		}
	}
	return errors.Join(errs...)
}
