// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"

	"github.com/stagger-go/stagger/policy"
)

// The places of the sources of chance that a run draws from; those of services and links follow.
const (
	arrivalChance = 0 // as the storms of bench have it
	perSource     = 8
)

// build sets up a run of a scenario that has been checked, for one of its variants.
func build(s *Scenario, v *Variant, seed uint64) (*world, error) {
	w := &world{
		scenario: s, from: s.until(Lead), over: s.until(Lead, Trouble), until: s.Length(),
		part: s.Recovery.Window / recoveryParts,
	}
	byName := map[string]*service{}
	for i := range s.Services {
		made := w.addService(&s.Services[i], v, chance(seed, uint64(1000+i)))
		byName[made.spec.Name] = made
	}
	b := builder{world: w, variant: v, byName: byName, seed: seed}
	for _, from := range w.services {
		for i := range from.spec.Calls {
			to := &from.spec.Calls[i]
			l, err := b.link(from.spec.Name, to, cmp.Or(to.Clients, from.spec.Backends))
			if err != nil {
				return nil, err
			}
			from.links = append(from.links, l)
		}
	}
	for i := range s.Fleets {
		if err := b.source(&s.Fleets[i], uint64(i)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) addService(spec *Service, v *Variant, random *rng) *service {
	made := &service{world: w, spec: spec, chance: random, drops: spec.Abandoned == Drop, guards: spec.Guard}
	if v.Guard != nil {
		made.guards = *v.Guard
	}
	made.full = newAnswer(refusal(spec.Refuse), nil)
	for i := range spec.Backends {
		made.backends = append(made.backends, &backend{service: made, index: i, effect: effect{slower: 1, workers: spec.Workers}})
	}
	n := w.buckets()
	made.tally.arrivals, made.tally.held, made.tally.capacity = make([]int, n), make([]int, n), make([]float64, n)
	made.tally.peak.stretch = peakStretch
	w.services = append(w.services, made)
	return made
}

// builder adds who calls.
type builder struct {
	world   *world
	variant *Variant
	byName  map[string]*service
	seed    uint64
	links   uint64
}

func (b *builder) source(f *Fleet, i uint64) error {
	w := b.world
	l, err := b.link(f.Name, &f.Call, cmp.Or(b.variant.Clients, f.Clients))
	if err != nil {
		return err
	}
	s := &source{world: w, spec: f, link: l, arrivals: chance(b.seed, arrivalChance+2000*i), chooses: chance(b.seed, 3000+i)}
	l.source = s
	n := w.buckets()
	parts := 0
	if w.over < w.until {
		parts = w.since(w.until) + 1
	}
	s.tally = fleetTally{
		world: w, reasons: map[policy.Reason]int{}, begun: make([]int, n), succeed: make([]int, n),
		fine: make([]int, parts), all: make([]int, parts),
	}
	w.sources = append(w.sources, s)
	return nil
}

// link makes what lies between the processes of one kind and a service.
func (b *builder) link(from string, spec *Call, clients int) (*link, error) {
	at := 10 + perSource*b.links
	b.links++
	l := &link{
		world: b.world, spec: spec, to: b.byName[spec.Service], attempts: cmp.Or(spec.Attempts, maxAttempts),
		processes: &processes{list: make([]process, clients)},
		jitter:    chance(b.seed, at), network: chance(b.seed, at+1), picks: chance(b.seed, at+2),
		turns: make([]uint32, clients*spec.connections()),
	}
	l.deadlines.agenda = &b.world.agenda
	turn := chance(b.seed, at+3)
	for i := range l.turns {
		l.turns[i] = turn.Uint32N(1 << 16)
	}
	return l, l.follow(b.world.scenario, b.variant.policyOf(from, spec.Policy), b.variant.methodOf(from, spec.Method))
}
