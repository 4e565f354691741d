// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/status"
)

// world is one run of a scenario.
type world struct {
	eventQueue

	scenario   *Scenario
	services   []*service
	fleets     []*fleet
	phase      uint32        // counted from 1
	phaseEnd   time.Duration // of this phase
	from       time.Duration // end of the lead-in
	recovers   time.Duration // end of the trouble
	until      time.Duration // end of the last phase
	partLength time.Duration // of the recovery's window
	filled     int           // number of complete buckets
	free       []*call       // memory of ended calls
}

// The events of a world.
const (
	phaseEnds eventKind = iota
	bucketEnds
)

// handle implements [handler].
func (w *world) handle(kind eventKind, _ uint32) {
	if kind == phaseEnds {
		w.enterPhase()
		return
	}
	w.fillBucket()
}

// playAll handles all events, until the calls that run at the end of the last phase have ended.
func (w *world) playAll(ctx context.Context) error {
	w.enterPhase()
	if w.buckets() > 0 {
		w.after(w.scenario.Bucket, w, bucketEnds, 0)
	}
	for w.handleNext() {
		if w.handled%(1<<16) != 0 {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enterPhase begins the next phase.
func (w *world) enterPhase() {
	w.phase++
	if int(w.phase) > len(w.scenario.Phases) {
		return
	}
	p := &w.scenario.Phases[w.phase-1]
	w.phaseEnd = w.now + p.Length
	for _, s := range w.services {
		s.applyFaults(p)
	}
	for _, f := range w.fleets {
		f.applyLoad(p)
	}
	w.after(p.Length, w, phaseEnds, 0)
}

// buckets returns the number of buckets that end before the last phase does.
func (w *world) buckets() int { return int(w.until / w.scenario.Bucket) }

// fillBucket completes a bucket.
func (w *world) fillBucket() {
	for _, s := range w.services {
		s.counts.held[w.filled] = s.inHand()
		s.counts.capacity[w.filled] = s.capacity()
	}
	w.filled++
	if w.filled < w.buckets() {
		w.after(w.scenario.Bucket, w, bucketEnds, 0)
	}
}

// addTo counts one in the bucket of a time. Times after the last bucket are not counted.
func (w *world) addTo(buckets []int, at time.Duration) {
	if i := int(at / w.scenario.Bucket); i < len(buckets) {
		buckets[i]++
	}
}

// recoveryPart returns the index of a time after the trouble; negative before.
func (w *world) recoveryPart(at time.Duration) int {
	if at < w.recovers {
		return -1
	}
	return int((at - w.recovers) / w.partLength)
}

// freeCall returns memory for a call.
func (w *world) freeCall() *call {
	last := len(w.free) - 1
	if last < 0 {
		return new(call)
	}
	c := w.free[last]
	w.free = w.free[:last]
	return c
}

// reuseCall keeps the memory of an ended call for another. Events scheduled for the ended call are stale.
func (w *world) reuseCall(c *call) {
	c.life++
	c.timer++
	c.parent = nil
	w.free = append(w.free, c)
}

type rng = rand.Rand

// random returns the n-th source of random numbers in a run. The sources are independent.
func random(seed, n uint64) *rng {
	return rand.New(rand.NewPCG(seed, n))
}

// The index of the first random source of each fleet, service and link.
const (
	fleetRandom   = 0 // arrivals, drawn as in the storms of lab
	linkRandom    = 10
	serviceRandom = 1000
	clientRandom  = 3000
	choiceRandom  = 1_000_000
)

// newWorld sets up a run of a checked scenario, for one of its variants.
func newWorld(s *Scenario, v *Variant, seed uint64) (*world, error) {
	w := &world{
		scenario: s, from: s.TroubleStart(), recovers: s.TroubleEnd(), until: s.Length(),
		partLength: s.Recovery.Window / recoveryParts,
	}
	b := builder{world: w, variant: v, seed: seed, byName: map[string]*service{}, retriers: map[retriersKey]*retriers{}}
	for i := range s.Services {
		b.addService(&s.Services[i], uint64(i))
	}
	for _, from := range w.services {
		for i := range from.spec.Calls {
			to := &from.spec.Calls[i]
			l, err := b.newLink(from.spec.Name, to, cmp.Or(to.Clients, from.spec.Backends))
			if err != nil {
				return nil, err
			}
			from.links = append(from.links, l)
		}
	}
	for i := range s.Fleets {
		if err := b.addFleet(&s.Fleets[i], uint64(i)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// builder adds the parts of a world.
type builder struct {
	world    *world
	variant  *Variant
	byName   map[string]*service
	seed     uint64
	links    uint64
	retriers map[retriersKey]*retriers
}

func (b *builder) addService(spec *Service, i uint64) {
	w := b.world
	s := &service{
		world: w, spec: spec, random: random(b.seed+b.variant.ServiceSeed<<32, serviceRandom+i),
		drops: spec.Abandoned == AbandonedDrop, guards: spec.Guard,
		cached:    1, // as long before the start
		queueFull: newAnswer(status.New(spec.Refuse, "queue full"), nil), counts: newServiceCounts(w.buckets()),
	}
	if b.variant.Guard != nil {
		s.guards = *b.variant.Guard
	}
	for i := range spec.Backends {
		s.backends = append(s.backends, &backend{service: s, index: i, starts: 1, faults: faults{slower: 1, workers: spec.Workers}})
	}
	w.services = append(w.services, s)
	b.byName[spec.Name] = s
}

func (b *builder) addFleet(spec *Fleet, i uint64) error {
	f := &fleet{
		world: b.world, spec: spec, shares: spec.shares(), clients: cmp.Or(b.variant.Clients, spec.Clients, 1), counts: newFleetCounts(b.world),
		arrivals: random(b.seed, fleetRandom+2000*i), whose: random(b.seed, clientRandom+i), choice: random(b.seed, choiceRandom+i),
	}
	b.world.fleets = append(b.world.fleets, f)
	for i := range spec.Calls {
		l, err := b.newLink(spec.Name, &spec.Calls[i], f.clients)
		if err != nil {
			return err
		}
		l.fleet = f
		f.links = append(f.links, l)
	}
	f.scheduleEnd()
	return nil
}

// newLink connects the processes of one kind with a service.
func (b *builder) newLink(from string, spec *Call, clients int) (*link, error) {
	n := linkRandom + 8*b.links
	b.links++
	l := &link{
		world: b.world, spec: spec, to: b.byName[spec.Service],
		roundRobin: make([]uint32, clients*spec.connections()),
		work:       cmp.Or(spec.Work, 1),
		limiter:    newLimiter(spec.Limit, clients),
		blind:      b.variant.Blind,
		jitter:     random(b.seed, n), network: random(b.seed, n+1), picks: random(b.seed, n+2),
	}
	first := random(b.seed, n+3)
	for i := range l.roundRobin {
		l.roundRobin[i] = first.Uint32N(1 << 16)
	}
	key := retriersKey{from, b.variant.policyOf(from, spec.Policy), clients}
	if b.retriers[key] == nil {
		b.retriers[key] = newRetriers(b.world.scenario.setOf(key.policy), clients)
	}
	return l, l.setPolicy(b.retriers[key], b.variant.methodOf(from, spec.Method))
}
