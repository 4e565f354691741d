// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Limits of shrinking.
const (
	mostTries   = 150
	shrinkSeeds = 2
	leastLoss   = 0.03
)

// small is a scenario file with no retries and one player, reduced to the parts without which the player is no longer worse.
type small struct {
	Scenario *sim.Scenario
	Loss     float64 // under shrinkSeeds seeds
	Tries    int
}

// shrink reduces the scenario while the player loses at least half of its original loss, and at least 3 points.
func (d *drawn) shrink(ctx context.Context, player string) (*small, error) {
	s := d.with([]string{noRetries, player})
	s.Policies = map[string]*sim.Policy{}
	for _, v := range s.Variants {
		if p := d.Scenario.Policies[v.All]; p != nil {
			s.Policies[v.All] = p
		}
	}
	for i := range s.Fleets[0].Calls {
		s.Fleets[0].Calls[i].Policy = s.Variants[1].All
	}
	for i := range s.Services {
		for k := range s.Services[i].Calls {
			s.Services[i].Calls[k].Policy = s.Variants[1].All
		}
	}
	least, err := lossOf(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &small{Scenario: s, Loss: least}
	least = max(least/2, leastLoss)
	for again := true; again; {
		again = false
		for _, change := range changes(r.Scenario) {
			next, err := clone(r.Scenario)
			if err != nil {
				return nil, err
			}
			if r.Tries >= mostTries {
				return r, nil
			}
			if !change(next) {
				continue
			}
			if next, err = clone(next); err != nil {
				continue // it no longer fits
			}
			r.Tries++
			loss, err := lossOf(ctx, next)
			if err != nil {
				return nil, err
			}
			if loss >= least {
				r.Scenario, r.Loss, again = next, loss, true
			}
		}
	}
	return r, nil
}

// clone returns the scenario as read from its file.
func clone(s *sim.Scenario) (*sim.Scenario, error) {
	var file bytes.Buffer
	if err := s.Write(&file); err != nil {
		return nil, err
	}
	return sim.Parse("shrunk.yaml", file.Bytes(), nil)
}

// lossOf returns how much worse the second variant is than the first.
func lossOf(ctx context.Context, s *sim.Scenario) (float64, error) {
	var loss float64
	for seed := range uint64(shrinkSeeds) {
		r, err := s.Run(ctx, sim.Options{Seed: seed + 1, Parallel: 1})
		if err != nil {
			return 0, err
		}
		loss += (r.Runs[0].Fleets[0].Success - r.Runs[1].Fleets[0].Success) / shrinkSeeds
	}
	return loss, nil
}

// A change reduces or simplifies a scenario. It returns false if there is nothing to change.
type change func(*sim.Scenario) bool

// changes returns the changes to try, the largest first.
func changes(s *sim.Scenario) []change {
	list := []change{dropHop, dropMethod}
	for i := range slices.Backward(s.Phases) {
		list = append(list, dropPhase(i))
	}
	list = append(list, dropFaults)
	for i := range s.Phases {
		for k := range s.Phases[i].Faults {
			list = append(list, dropFault(i, k))
		}
	}
	list = append(list, fewerClients, plainNetwork)
	for i := range s.Services {
		list = append(list, simpler(i, oneTime), simpler(i, func(s *sim.Service) { s.Order = sim.OrderFIFO }),
			simpler(i, func(s *sim.Service) { s.Abandoned = sim.AbandonedServe }),
			simpler(i, func(s *sim.Service) { s.Backends, s.Workers, s.Queue = 1, s.Backends*s.Workers, s.Backends*s.Queue }),
			simpler(i, func(s *sim.Service) { s.Queue = int(rounder(float64(s.Queue))) }))
	}
	list = append(list, round(func(s *sim.Scenario) { s.Fleets[0].Rate = rounder(s.Fleets[0].Rate) }),
		round(func(s *sim.Scenario) { s.Fleets[0].Clients = int(rounder(float64(s.Fleets[0].Clients))) }),
		round(func(s *sim.Scenario) {
			c := &s.Fleets[0].Calls[0]
			c.Deadline = time.Duration(rounder(float64(c.Deadline)))
		}),
		round(func(s *sim.Scenario) {
			for i := range s.Phases {
				p := &s.Phases[i]
				p.Length, p.Load = max(p.Length.Round(time.Second), time.Second), math.Round(p.Load*20)/20
			}
		}))
	return list
}

// rounder returns a number with one significant digit.
func rounder(f float64) float64 {
	if f <= 0 {
		return f
	}
	unit := math.Pow(10, math.Floor(math.Log10(f)))
	return math.Round(f/unit) * unit
}

// round is a change that may have no effect.
func round(f func(*sim.Scenario)) change {
	return func(s *sim.Scenario) bool {
		var before, after bytes.Buffer
		if s.Write(&before) != nil {
			return false
		}
		f(s)
		return s.Write(&after) == nil && !bytes.Equal(before.Bytes(), after.Bytes())
	}
}

// simpler changes a service.
func simpler(i int, f func(*sim.Service)) change {
	return round(func(s *sim.Scenario) {
		if i < len(s.Services) {
			f(&s.Services[i])
		}
	})
}

func oneTime(s *sim.Service) {
	s.Time = &sim.Distribution{A: neat(s.Time.Mean()), Shape: sim.ShapeExponential}
}

// dropHop makes the users call the second service of a chain.
func dropHop(s *sim.Scenario) bool {
	if len(s.Services) < 2 {
		return false
	}
	below := s.Services[0].Calls[0]
	call := &s.Fleets[0].Calls[0]
	call.Service, call.Method = below.Service, below.Method
	for i := range s.Phases {
		s.Phases[i].Faults = slices.DeleteFunc(s.Phases[i].Faults, func(f sim.Fault) bool { return f.Service == s.Services[0].Name })
	}
	s.Services = s.Services[1:]
	return true
}

func dropMethod(s *sim.Scenario) bool {
	f := &s.Fleets[0]
	if len(f.Calls) < 2 {
		return false
	}
	f.Calls = f.Calls[:1]
	f.Calls[0].Share = 0
	f.Rate = tidy(s.Services[0].Capacity())
	return true
}

func dropPhase(i int) change {
	return func(s *sim.Scenario) bool {
		if i >= len(s.Phases) {
			return false
		}
		s.Phases = slices.Delete(s.Phases, i, i+1)
		return len(s.Phases) > 0
	}
}

func dropFaults(s *sim.Scenario) bool {
	some := false
	for i := range s.Phases {
		some = some || len(s.Phases[i].Faults) > 0
		s.Phases[i].Faults = nil
	}
	return some
}

func dropFault(i, k int) change {
	return func(s *sim.Scenario) bool {
		if i >= len(s.Phases) || k >= len(s.Phases[i].Faults) {
			return false
		}
		s.Phases[i].Faults = slices.Delete(s.Phases[i].Faults, k, k+1)
		return true
	}
}

func fewerClients(s *sim.Scenario) bool {
	f := &s.Fleets[0]
	if f.Clients < 2 {
		return false
	}
	f.Clients /= 2
	return true
}

func plainNetwork(s *sim.Scenario) bool {
	return round(func(s *sim.Scenario) {
		for i := range s.Fleets[0].Calls {
			c := &s.Fleets[0].Calls[i]
			c.Delay, c.Loss, c.Connections = nil, 0, 0
		}
	})(s)
}
