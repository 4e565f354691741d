// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/testserver"
)

// applyFaults gives the backends the faults of a phase. Running attempts end as they began.
func (s *service) applyFaults(p *sim.Phase) error {
	for i, server := range s.servers {
		list, workers := s.faults(p, i), s.spec.Workers
		for _, f := range list {
			if f.Workers != nil {
				workers = min(workers, *f.Workers)
			}
		}
		if err := s.queues[i].SetWorkers(workers); err != nil {
			return fmt.Errorf("outage: %s: %w", s.spec.Name, err)
		}
		server.On("*", s.stepOf(list, i))
	}
	return nil
}

// faults returns a backend's faults in a phase.
func (s *service) faults(p *sim.Phase, backend int) (list []*sim.Fault) {
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.Service == s.spec.Name && (len(f.Backends) == 0 || slices.Contains(f.Backends, backend)) {
			list = append(list, f)
		}
	}
	return list
}

// stepOf returns how a backend answers each request: its work, then the calls to other services, unless it has a fault other
// than a lack of workers. Of several faults, a hang or an outage counts, else the first that hits the request.
func (s *service) stepOf(list []*sim.Fault, backend int) testserver.Step {
	step := s.work(backend)
	for i, f := range slices.Backward(list) {
		if f.Workers == nil {
			step = faulty(f, uint64(backend)+uint64(i)<<32, s.queues[backend], step)
		}
	}
	for _, f := range list {
		if f.Hang {
			return testserver.Hang()
		}
		if f.Down {
			step = failure(f)
		}
	}
	return step
}

// work returns how a backend without a fault answers each request.
func (s *service) work(backend int) testserver.Step {
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

// faulty returns how a backend answers with a fault that hits a part of the requests; the others are answered with step. Random
// numbers come from the seed.
func faulty(f *sim.Fault, seed uint64, q *faults.Queue, step testserver.Step) testserver.Step {
	part, hit := f.Flaky, q.Serve(failure(f))
	switch {
	case f.Slow != nil:
		part, hit = f.Slow.Part, q.Serve(testserver.OK().Delay(f.Slow.By.Mean()))
	case f.AtOnce:
		hit = failure(f)
	}
	return eitherOf(rand.New(rand.NewPCG(seed, 7)), part, hit, step)
}

// eitherOf returns a step that is hit for a part of the requests, and else the other.
func eitherOf(random *rand.Rand, part float64, hit, other testserver.Step) testserver.Step {
	if part == 0 {
		return other
	}
	var mu sync.Mutex // guards random
	return testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() < part {
			return hit
		}
		return other
	})
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
	for i := range s.Fleets {
		refuse(len(s.Fleets[i].Calls) != 1, "users with several kinds of calls")
		refuse(s.Fleets[i].Lifetime > 0, "processes that come and go")
		for k := range s.Fleets[i].Calls {
			call(&s.Fleets[i].Calls[k])
		}
	}
	calls := map[string]bool{}
	for i := range s.Services {
		v := &s.Services[i]
		calls[v.Name] = len(v.Calls) > 0
		refuse(v.Order != sim.OrderFIFO || v.Thrash > 1 || v.Connect > 0 || v.Cache != nil || v.CoDel != nil,
			"a service with another order, thrashing, costly connections, a cache, or CoDel")
		for k := range v.Calls {
			call(&v.Calls[k])
		}
	}
	for i := range s.Phases {
		for _, f := range s.Phases[i].Faults {
			refuse(f.Method != "", "a fault of one method")
			refuse(f.Slower > 0 || f.Workers != nil && (f.Down || f.Hang || f.Flaky > 0 || f.Slow != nil) || calls[f.Service] && !f.Down && !f.Hang && f.Workers == nil,
				"a slower service, fewer workers with another fault, or a flaky or slow service that calls others")
		}
	}
	return errors.Join(errs...)
}
