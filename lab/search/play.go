// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// outcome has the results of a scenario's calls with a player, in the trouble and after it.
type outcome struct {
	Success float64 `json:"success"`         // 0 to 1
	Never   bool    `json:"never,omitempty"` // calls have not
	PerCall float64 `json:"perCall"`         // requests at the last service
}

// with returns the scenario with these players as its variants.
func (d *drawn) with(names []string) *sim.Scenario {
	s := *d.Scenario
	s.Policies = maps.Clone(s.Policies)
	s.Variants = nil
	for _, name := range names {
		s.Variants = append(s.Variants, variant(name))
	}
	return &s
}

// variant returns the player of that name: without retries, or by the policy of its name; with admission, by the default
// policy with one more key.
func variant(name string) sim.Variant {
	switch name {
	case noRetries:
		return sim.Variant{Name: name, All: sim.NoPolicy}
	case "admission":
		return sim.Variant{Name: name, All: defaultPlayer, Set: `{"admission": "REFUSE"}`}
	}
	v := sim.Variant{Name: name, All: name}
	for _, p := range players {
		if p.name == name && p.grpc {
			v.Guard, v.Blind = new(false), true
		}
	}
	return v
}

// play plays the scenario with these players, under one seed: the same calls at the same times.
func (d *drawn) play(ctx context.Context, seed uint64, names ...string) ([]outcome, error) {
	r, err := d.with(names).Run(ctx, sim.Options{Seed: seed, Parallel: 1})
	if err != nil {
		return nil, err
	}
	list := make([]outcome, len(names))
	for i, run := range r.Runs {
		calls, ok := 0, 0.0
		for _, f := range run.Fleets {
			calls += f.Calls
			ok += float64(f.Calls) * f.Success
			list[i].Never = list[i].Never || f.Recovery.State == sim.RecoveryNever
		}
		list[i].Success = ok / float64(max(calls, 1))
		list[i].PerCall = run.Services[len(run.Services)-1].PerCall
	}
	return list, nil
}
