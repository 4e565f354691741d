// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// fragile returns a scenario with a small service behind a gateway with a deadline of 200 ms, whose callers retry without a
// budget.
func fragile(t *testing.T) *Scenario {
	t.Helper()
	s := must.Get(parse(`
title: fragile
policies:
  eager:
    methodConfig:
    - name: [{service: a.B, method: C}]
      retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 0.2s, backoffMultiplier: 2, retryableStatusCodes: [DEADLINE_EXCEEDED], budget: NONE}
services:
  - {name: shop, workers: 4, time: 20ms, queue: 300}
  - {name: gateway, workers: 100, time: 1ms, queue: 1000, calls: [{service: shop, deadline: 200ms}]}
fleets: [{name: users, rate: 100, calls: {service: gateway, method: /a.B/C, policy: eager, deadline: 1s}}]
variants: [{name: eager, blind: true}]
phases:
  - {name: calm, kind: LEAD, length: 2s}
  - {name: pulse, length: 2s, load: 4}
  - {name: after, kind: AFTER, length: 12s}
`))(t)
	return s
}

// All variants serve nearly the same load, but eager retries recover only from lower ones.
func TestStability(t *testing.T) {
	t.Parallel()
	var last float64
	r := must.Get(fragile(t).Stability(t.Context(), Options{Parallel: 1, Progress: func(part float64) { last = max(last, part) }}))(t)
	none, eager := r.Variants[0], r.Variants[1]
	if r.Capacity != 200 || r.Service != "shop" || len(r.Seeds) != 3 || none.Name != "no retries" || eager.Name != "eager" || last < 0.999 {
		t.Errorf("%+v, and %v of it told", r, last)
	}
	for _, v := range r.Variants {
		if v.Serves.Holds < 0.85 || v.Serves.Holds > 1.05 || math.Abs(v.Serves.Fails-v.Serves.Holds-1.0/steps) > 1e-9 {
			t.Errorf("%s serves all %+v; want up to the capacity", v.Name, v.Serves)
		}
		if v.Recovers.Fails > v.Serves.Fails || math.Abs(v.Recovers.Fails-v.Recovers.Holds-1.0/steps) > 1e-9 {
			t.Errorf("%s recovers %+v and serves %+v; want no more than is served", v.Name, v.Recovers, v.Serves)
		}
		for i, at := range v.Times {
			if at.Load != float64(i+1)/10 || (at.Took.State == RecoveryReturned) != (at.Load <= v.Recovers.Holds) {
				t.Errorf("%s recovers %+v, and at %v %v", v.Name, v.Recovers, at.Load, at.Took)
			}
		}
	}
	if none.Recovers.Holds < 0.8 || eager.Recovers.Holds > 0.4 || eager.Recovers.Holds < 0.1 {
		t.Errorf("recover %+v without retries, and %+v with them; want most of the capacity, and little of it", none.Recovers, eager.Recovers)
	}
	if a, b := none.Times[0].Took.Took, none.Times[6].Took.Took; a >= b || b > 10*time.Second {
		t.Errorf("back after %v at a tenth of the capacity, %v at seven; want longer at a higher load", a, b)
	}
}

// A scenario that fails at all loads, or holds at all, has only one side of a limit.
func TestStabilityLimits(t *testing.T) {
	t.Parallel()
	s := fragile(t)
	s.Fleets[0].Calls[0].Loss = 0.2
	s.Variants = []Variant{{Name: "none", All: NoPolicy}}
	r, err := s.Stability(t.Context(), Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Variants[0]; len(r.Variants) != 1 || v.Serves != (Limit{Fails: 1.0 / steps}) || v.Recovers != v.Serves || len(v.Times) != 0 || r.Seeds[0] != 7 {
		t.Errorf("%+v; want that it serves at no load", r)
	}
	s = fragile(t)
	s.Services[1].Calls[0].Deadline, s.Fleets[0].Calls[0].Deadline, s.Services[0].Queue = 0, time.Minute, 10_000
	s.Phases[1].Load, s.Variants = 1, []Variant{{Name: "none", All: NoPolicy}}
	if r, err = s.Stability(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if v := r.Variants[0]; v.Serves != (Limit{Holds: 1.1}) || v.Recovers != v.Serves || len(v.Times) != 11 {
		t.Errorf("%+v; want that it holds at all loads", v)
	}
}

// The bottleneck limits the calls. Calls between services, their shares and their work count.
func TestStabilityCapacity(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services = append(s.Services, Service{Name: "stock", Backends: 2, Workers: 2, Time: &Distribution{A: 10 * time.Millisecond}}) // 400 a second
	s.Services[0].Workers = 100                                                                                                     // 1000 a second
	s.Services[0].Calls = []Call{{Service: "stock", Work: 2}, {Service: "stock"}}
	s.Fleets[0].Rate = 30
	s.Fleets[0].Calls = []Call{{Service: "shop", Share: 3}, {Service: "stock", Work: 7}}
	got, name := s.bottleneck() // 0.75·3 + 0.25·7 = 4 times 10 ms a call
	if math.Abs(got-100) > 1e-9 || name != "stock" {
		t.Errorf("%v calls a second at %s; want 100 at stock", got, name)
	}
}

func TestStabilityErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Scenario){
		"none is of kind AFTER":            func(s *Scenario) { s.Phases = s.Phases[:2] },
		"none is of kind LEAD":             func(s *Scenario) { s.Phases = s.Phases[1:] },
		"clients makes too many processes": func(*Scenario) {},
	} {
		s := fragile(t)
		change(s)
		if _, err := s.Stability(t.Context(), Options{Clients: 1 << 30}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := fragile(t)
	s.Fleets[0].Rate = 10_000
	if _, err := s.Stability(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that it was interrupted", err)
	}
}
