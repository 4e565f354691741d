// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Sketch has the few numbers of a service and its clients that are known before any measurement.
type Sketch struct {
	Policy    *Policy       // of the calls
	Method    string        // "/package.Service/Method"; "": the first idempotent one of the policy
	Rate      float64       // calls per second of all processes together
	Latency   time.Duration // of a worker for a call, on average
	Workers   int           // parallel calls in the service, all backends together
	Processes int           // of callers
}

// pulseLoad is a pulse's load, as a part of the capacity.
const pulseLoad = 1.5

// Scenario returns a scenario with a pulse, for [Scenario.Run] and [Scenario.Stability]. The error names an impossible
// number, or reports that no method may be retried.
func (k Sketch) Scenario() (*Scenario, error) {
	capacity := float64(k.Workers) / k.Latency.Seconds()
	switch {
	case !(k.Rate > 0) || k.Latency <= 0 || k.Workers < 1 || k.Processes < 1:
		return nil, errors.New("the calls per second, the latency, the workers and the processes must each be more than 0")
	case k.Rate >= capacity:
		return nil, fmt.Errorf("%v calls per second: must be less than the %.4g that %d workers with %v for each serve", k.Rate, capacity, k.Workers, k.Latency)
	}
	method, err := k.pickMethod()
	if err != nil {
		return nil, err
	}
	deadline := max(time.Second, 50*k.Latency)
	if p := k.Policy.Lookup(method); p != nil {
		deadline = cmp.Or(p.Spec().Timeout, deadline)
	}
	deadline = min(deadline, longestTime)
	calls := func(n float64) time.Duration { // the time of n calls
		return time.Duration(min(n/k.Rate, mostLength.Seconds()) * float64(time.Second)).Round(time.Millisecond)
	}
	phase := func(long, calls time.Duration) time.Duration { return min(max(long, calls), mostLength/3) }
	s := &Scenario{
		Title: fmt.Sprintf("a service that takes %v for each of %.4g calls a second", k.Latency, k.Rate),
		About: "Made from a policy and four numbers. These are guesses: one backend, exponential times, a queue of 1.5 deadlines, and a pulse of 1.5 times " +
			"the capacity: change them to match your service.",
		Seed: 1, Policies: map[string]*Policy{"own": k.Policy},
		Recovery: Recovery{Success: defaultRecovery.Success, Window: min(max(defaultRecovery.Window, calls(25)), time.Hour)},
		Services: []Service{{
			Name: "service", Backends: 1, Workers: k.Workers, Time: &Distribution{Shape: ShapeExponential, A: k.Latency}, Refuse: codes.ResourceExhausted, Guard: true,
			Queue: int(min(math.Ceil(1.5*capacity*deadline.Seconds()), 100_000_000)),
		}},
		Fleets: []Fleet{{
			Name: "processes", Clients: k.Processes, Rate: k.Rate, Calls: []Call{{Service: "service", Method: method, Policy: "own", Deadline: deadline}},
		}},
		Variants: []Variant{{Name: "no retries", All: NoPolicy}, {Name: "own policy"}},
		Phases: []Phase{
			{Name: "calm", Kind: KindLead, Length: phase(10*deadline, calls(200)), Load: 1},
			{Name: "pulse", Length: phase(5*deadline/2, calls(100)), Load: math.Round(100*pulseLoad*capacity/k.Rate) / 100},
			{Name: "after", Kind: KindAfter, Length: phase(15*deadline, calls(500)), Load: 1},
		},
	}
	s.Bucket = s.bucket()
	return s, nil
}

// pickMethod returns the method to call: a name in the policy's first entry with retries that makes its methods retryable.
func (k Sketch) pickMethod() (string, error) {
	if k.Method != "" {
		return k.Method, nil
	}
	for _, p := range k.Policy.Policies() {
		service, name, _ := strings.Cut(p.Name()[1:], "/")
		method := "/" + cmp.Or(service, "any.Service") + "/" + cmp.Or(name, "AnyMethod")
		if p.MaxAttempts() > 1 && k.Policy.Lookup(method) == p && k.Policy.Safe(p, method) {
			return method, nil
		}
	}
	return "", errors.New("no entry of the policy makes the methods that it names retryable; name an idempotent method")
}
