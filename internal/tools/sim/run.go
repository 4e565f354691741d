// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Options are how a scenario is played. The zero value plays it as it says.
type Options struct {
	Seed     uint64 // in place of the scenario's; 0: as it says
	Clients  int    // of each fleet, in place of the scenario's; 0: as it says
	Parallel int    // variants that are played at a time; 0: one for each processor
	// Progress is called now and then with how much of the virtual time of all variants has passed, 0 to 1, by
	// several goroutines, but never by two at once. It may be nil.
	Progress func(part float64)
}

// Run plays a scenario once for each of its variants. The error is that of ctx, or names a policy's budget
// that cannot be made. A Scenario may be run by several goroutines at once.
func (s *Scenario) Run(ctx context.Context, o Options) (*Result, error) {
	s = s.withDefaults()
	variants := s.Variants
	if len(variants) == 0 {
		variants = []Variant{{Name: s.Title}}
	}
	r := &Result{Scenario: s, Seed: cmp.Or(o.Seed, s.Seed), Bucket: s.Bucket, Runs: make([]Played, len(variants))}
	var (
		all      sync.WaitGroup
		slots    = make(chan struct{}, cmp.Or(max(o.Parallel, 0), runtime.GOMAXPROCS(0)))
		errs     = make([]error, len(variants))
		progress = progress{tell: o.Progress, parts: make([]float64, len(variants)), length: s.Length()}
	)
	for i := range variants {
		v, clients := variants[i], ""
		if o.Clients > 0 {
			v.Clients, clients = o.Clients, "clients"
		}
		if e := s.excess(&v, clients); e != nil {
			return nil, fmt.Errorf("sim: %s: variant %q: %s %s", s.Title, v.Name, e.field, e.message)
		}
	}
	for i := range variants {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			v := variants[i]
			v.Clients = cmp.Or(o.Clients, v.Clients)
			r.Runs[i], errs[i] = s.run(ctx, &v, r.Seed, progress.of(i))
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	r.compare()
	return r, nil
}

// withDefaults is the scenario as a file would have it that leaves these keys out.
func (s *Scenario) withDefaults() *Scenario {
	c := *s
	c.Recovery = cmp.Or(s.Recovery, defaultRecovery)
	c.Bucket = cmp.Or(s.Bucket, s.bucket())
	return &c
}

// run plays one variant.
func (s *Scenario) run(ctx context.Context, v *Variant, seed uint64, progress func(time.Duration)) (Played, error) {
	w, err := newWorld(s, v, seed)
	if err != nil {
		return Played{}, err
	}
	start := time.Now()
	if err := w.play(ctx, progress); err != nil {
		return Played{}, err
	}
	p := w.result(v.Name)
	p.Took = time.Since(start)
	return p, nil
}

// progress adds up how far the variants have come.
type progress struct {
	mu     sync.Mutex
	tell   func(float64)
	parts  []float64
	length time.Duration
}

// of is told how far variant i has come; nil if nobody asks.
func (p *progress) of(i int) func(time.Duration) {
	if p.tell == nil {
		return nil
	}
	return func(done time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.parts[i] = done.Seconds() / p.length.Seconds()
		var sum float64
		for _, part := range p.parts {
			sum += part
		}
		p.tell(sum / float64(len(p.parts)))
	}
}
