// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Stability is how much load a scenario can take. Loads are parts of the [Stability.Capacity].
type Stability struct {
	Scenario *Scenario          `json:"-"`
	Seeds    []uint64           `json:"seeds"`        // each load is played once for each
	Capacity float64            `json:"capacityPerS"` // calls per second of all fleets, without retries
	Service  string             `json:"service"`      // the bottleneck
	Variants []VariantStability `json:"variants"`
}

// VariantStability is how much load one variant can take.
type VariantStability struct {
	Name     string       `json:"name"`
	Serves   Limit        `json:"serves"`   // without trouble, the calls of each fleet succeed
	Recovers Limit        `json:"recovers"` // after the trouble, calls succeed again until the end
	Times    []RecoveryAt `json:"times"`
}

// Limit lies between two loads that were played. Holds is 0 if even the lowest load fails; Fails is 0 if the highest load
// holds.
type Limit struct {
	Holds float64 `json:"upTo"`
	Fails float64 `json:"notFrom"`
}

// RecoveryAt is the recovery time of the slowest fleet at a load: the median of the seeds.
type RecoveryAt struct {
	Load float64   `json:"load"`
	Took Recovered `json:"recovery"`
}

// The loads to play, in steps of the capacity: all coarse ones until one fails, then single ones in between.
const (
	steps       = 80 // of the capacity
	coarse      = steps / 10
	highest     = steps + coarse
	seedsPlayed = 3
)

// Stability plays the scenario with many loads before and after its unchanged trouble, and without the trouble. If no
// variant is without retries, it adds one. The error is that of [Scenario.Run], or names what is missing: the scenario needs
// phases before, in and after the trouble.
func (s *Scenario) Stability(ctx context.Context, o Options) (*Stability, error) {
	s = s.withDefaults()
	if err := s.sweepable(); err != nil {
		return nil, err
	}
	s.Variants = s.withoutRetries()
	r := &Stability{Scenario: s, Variants: make([]VariantStability, len(s.Variants))}
	r.Capacity, r.Service = s.bottleneck()
	for i := range seedsPlayed {
		r.Seeds = append(r.Seeds, cmp.Or(o.Seed, s.Seed)+uint64(i))
	}
	err := o.each(len(s.Variants), func(i int, progress func(float64)) (err error) {
		w := sweep{scenario: s, variant: s.Variants[i], options: o, seeds: r.Seeds, progress: progress}
		r.Variants[i], err = w.findLimits(ctx)
		progress(1)
		return err
	})
	return r, err
}

// sweepable returns an error that names what the scenario lacks.
func (s *Scenario) sweepable() error {
	for kind, name := range []string{KindTrouble: "TROUBLE", KindLead: "LEAD", KindAfter: "AFTER"} {
		if !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Kind == Kind(kind) }) {
			return fmt.Errorf("sim: %s: phases: none is of kind %s; the load before and after a trouble is changed, which needs all three kinds", s.Title, name)
		}
	}
	return nil
}

// withoutRetries returns the variants, one of which has no retries.
func (s *Scenario) withoutRetries() []Variant {
	variants := s.Variants
	if len(variants) == 0 {
		variants = []Variant{{Name: "as the scenario says"}}
	}
	if slices.ContainsFunc(variants, func(v Variant) bool { return v.All == NoPolicy && len(v.Policies) == 0 }) {
		return variants
	}
	return append([]Variant{{Name: "no retries", All: NoPolicy}}, variants...)
}

// bottleneck returns the calls per second of all fleets that fully occupy the first service, without retries, and that
// service.
func (s *Scenario) bottleneck() (perSecond float64, service string) {
	busy := map[string]float64{} // workers' seconds at each service for each second of the scenario
	var visit func(c *Call, rate float64)
	visit = func(c *Call, rate float64) {
		to := s.service(c.Service)
		busy[to.Name] += rate * cmp.Or(c.Work, 1) * to.Time.Mean().Seconds()
		for k := range to.Calls {
			visit(&to.Calls[k], rate)
		}
	}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		for k := range f.Calls {
			visit(&f.Calls[k], f.Rate*f.Calls[k].share()/f.shares())
		}
	}
	for i := range s.Services {
		to := &s.Services[i]
		if n := s.rate() * float64(to.Backends*to.Workers) / busy[to.Name]; busy[to.Name] > 0 && (service == "" || n < perSecond) {
			perSecond, service = n, to.Name
		}
	}
	return perSecond, service
}

// rate returns the rate of all fleets.
func (s *Scenario) rate() float64 {
	sum := 0.0
	for i := range s.Fleets {
		sum += s.Fleets[i].Rate
	}
	return sum
}

// withLoad returns the scenario with another load before and after its trouble or, without the trouble, all the time.
func (s *Scenario) withLoad(load float64, trouble bool, v Variant) *Scenario {
	c := *s
	c.Variants = []Variant{v}
	c.Phases = slices.Clone(s.Phases)
	for i := range c.Phases {
		if p := &c.Phases[i]; p.Kind != KindTrouble || !trouble {
			p.Load, p.Faults = load, nil
		}
	}
	return &c
}

// sweep plays one variant at many loads.
type sweep struct {
	scenario *Scenario
	variant  Variant
	options  Options
	seeds    []uint64
	progress func(done float64)
	played   int
}

// findLimits returns a variant's limits. The limit of recovery is the lowest load that fails: all tenths below it are
// played. Loads that are not served without trouble need no test.
func (w *sweep) findLimits(ctx context.Context) (VariantStability, error) {
	r := VariantStability{Name: w.variant.Name}
	last, first, err := w.findLimit(ctx, 0, highest+1, false)
	if err != nil {
		return r, err
	}
	r.Serves = newLimit(last, first)
	last = 0
	for step := coarse; step < first; step += coarse {
		took, err := w.playLoad(ctx, step, true)
		if err != nil {
			return r, err
		}
		r.Times = append(r.Times, RecoveryAt{float64(step) / steps, took})
		if took.State != RecoveryReturned {
			first = step
			break
		}
		last = step
	}
	last, first, err = w.findLimit(ctx, last, first, true)
	r.Recovers = newLimit(last, first)
	return r, err
}

func newLimit(holds, fails int) Limit {
	l := Limit{Holds: float64(holds) / steps}
	if fails <= highest {
		l.Fails = float64(fails) / steps
	}
	return l
}

// findLimit returns the two neighbouring steps between which the scenario begins to fail.
func (w *sweep) findLimit(ctx context.Context, holds, fails int, trouble bool) (last, first int, err error) {
	for fails-holds > 1 {
		middle := (holds + fails) / 2
		took, err := w.playLoad(ctx, middle, trouble)
		if err != nil {
			return 0, 0, err
		}
		if took.State == RecoveryReturned {
			holds = middle
		} else {
			fails = middle
		}
	}
	return holds, fails, nil
}

// playLoad plays a load with each seed. It returns the median recovery time of the slowest fleet, or never if one seed does
// not recover.
func (w *sweep) playLoad(ctx context.Context, step int, trouble bool) (Recovered, error) {
	perSecond, _ := w.scenario.bottleneck()
	s := w.scenario.withLoad(float64(step)/steps*perSecond/w.scenario.rate(), trouble, w.variant)
	list := make([]time.Duration, 0, len(w.seeds))
	for _, seed := range w.seeds {
		r, err := s.Run(ctx, Options{Seed: seed, Clients: w.options.Clients, Parallel: 1})
		if err != nil {
			return Recovered{}, err
		}
		w.played++
		w.progress(min(float64(w.played)/usualPlays, 1))
		var slowest time.Duration
		for i := range r.Runs[0].Fleets {
			f := &r.Runs[0].Fleets[i]
			if trouble && !s.stays(f) || !trouble && f.Success < s.Recovery.Success {
				return Recovered{State: RecoveryNever}, nil
			}
			slowest = max(slowest, f.Recovery.Took)
		}
		list = append(list, slowest)
	}
	slices.Sort(list)
	return Recovered{RecoveryReturned, list[len(list)/2]}, nil
}

// usualPlays is roughly how often a variant is played.
const usualPlays = 60

// stays reports whether a fleet has recovered, and still meets the goal in the last quarter of the time after the trouble.
func (s *Scenario) stays(f *FleetResult) bool {
	var begun, succeeded int
	for i := int((s.Length() - (s.Length()-s.TroubleEnd())/4) / s.Bucket); i < len(f.Begun); i++ {
		begun += f.Begun[i]
		succeeded += f.Succeeded[i]
	}
	return f.Recovery.State == RecoveryReturned && (begun == 0 || Ratio(succeeded, begun) >= s.Recovery.Success)
}
