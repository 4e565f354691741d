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

	"github.com/stagger-go/stagger/policy"
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
	for i := range variants {
		v, clients := variants[i], ""
		if o.Clients > 0 {
			v.Clients, clients = o.Clients, "clients"
		}
		if e := s.excess(&v, clients); e != nil {
			return nil, fmt.Errorf("sim: %s: variant %q: %s %s", s.Title, v.Name, e.field, e.message)
		}
	}
	err := o.each(len(variants), func(i int, progress func(float64)) (err error) {
		v := variants[i]
		v.Clients = cmp.Or(o.Clients, v.Clients)
		r.Runs[i], err = s.runVariant(ctx, &v, r.Seed, progress)
		return err
	})
	if err != nil {
		return nil, err
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

// runVariant plays one variant.
func (s *Scenario) runVariant(ctx context.Context, v *Variant, seed uint64, progress func(done float64)) (Played, error) {
	w, err := newWorld(s, v, seed)
	if err != nil {
		return Played{}, err
	}
	if err := w.playAll(ctx, progress); err != nil {
		return Played{}, err
	}
	return w.worldResult(v.Name), nil
}

// each plays n parts, several at a time, and returns the first error. A part says how much of it is done, 0 to 1.
func (o *Options) each(n int, play func(i int, progress func(done float64)) error) error {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, cmp.Or(max(o.Parallel, 0), runtime.GOMAXPROCS(0)))
		errs  = make([]error, n)
		parts = make([]float64, n)
	)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = play(i, func(done float64) {
				mu.Lock()
				defer mu.Unlock()
				parts[i] = done
				sum := 0.0
				for _, part := range parts {
					sum += part
				}
				if o.Progress != nil {
					o.Progress(sum / float64(n))
				}
			})
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// Result is what became of a scenario. Its JSON gives times in nanoseconds.
type Result struct {
	Scenario *Scenario     `json:"-"`
	Seed     uint64        `json:"seed"`
	Bucket   time.Duration `json:"bucketNs"` // of the series
	Runs     []Played      `json:"runs"`     // one for each variant, in their order
}

// Played is what became of one variant.
type Played struct {
	Name     string          `json:"name"`
	Fleets   []FleetResult   `json:"fleets"`
	Services []ServiceResult `json:"services"`
	Events   uint64          `json:"events"` // that happened
}

// FleetResult is what became of a fleet's calls. Those of the lead-in are in the series alone.
type FleetResult struct {
	Name     string        `json:"name"`
	Clients  int           `json:"clients"`
	Calls    int           `json:"calls"`
	Success  float64       `json:"success"`         // of the calls, 0 to 1
	Goodput  float64       `json:"goodputPerS"`     // calls that succeeded
	PerCall  float64       `json:"attemptsPerCall"` // those of the calls of services not included
	Mean     time.Duration `json:"meanNs"`
	P50      time.Duration `json:"p50Ns"` // of all calls, failed ones too; 1/128 too long at most, as the others
	P99      time.Duration `json:"p99Ns"`
	P999     time.Duration `json:"p999Ns"`
	Recovery Recovered     `json:"recovery"`
	Refused  int           `json:"refused"` // of the calls, before their first attempt
	// ServedBy is how many of the calls that failed have succeeded in other variants, by their names. Only the calls of a fleet
	// with a rate are the same in each.
	ServedBy   map[string]int        `json:"servedBy,omitempty"`
	Reasons    map[policy.Reason]int `json:"reasons"`          // why no other attempt followed
	Delays     Delays                `json:"delays"`           // before extra attempts
	Begun      []int                 `json:"begun"`            // calls, in each bucket
	Succeeded  []int                 `json:"succeeded"`        // of those
	ByCall     []CallResult          `json:"byCall,omitempty"` // of a fleet with several calls, in their order
	Unfinished int                   `json:"unfinished"`       // calls that never ended, since what they waited for was lost and they had no deadline

	served numbers // of the calls that succeeded
}

// CallResult is what became of one of the calls that a fleet makes.
type CallResult struct {
	Service string  `json:"service"`
	Method  string  `json:"method"`
	Calls   int     `json:"calls"`
	Success float64 `json:"success"` // of the calls, 0 to 1
	PerCall float64 `json:"attemptsPerCall"`
}

// Recovered is how long a fleet took to be served well again after the trouble.
type Recovered struct {
	State RecoveryState `json:"state"`
	Took  time.Duration `json:"tookNs"` // if it returned
}

// String is the time in seconds, "never", or a dash if there was nothing to recover from.
func (r Recovered) String() string {
	switch r.State {
	case RecoveryReturned:
		return fmt.Sprintf("%.2f", r.Took.Seconds())
	case RecoveryNever:
		return "never"
	default:
		return "–"
	}
}

// RecoveryState says whether a fleet recovered.
type RecoveryState string

// The states.
const (
	RecoveryUndisturbed RecoveryState = "undisturbed" // the scenario has no phase after the trouble
	RecoveryReturned    RecoveryState = "returned"
	RecoveryNever       RecoveryState = "never" // within the scenario
)

// Delays are the waits before extra attempts.
type Delays struct {
	Count uint64        `json:"count"`
	Mean  time.Duration `json:"meanNs"`
	P50   time.Duration `json:"p50Ns"`
	P99   time.Duration `json:"p99Ns"`
	Bins  []Bin         `json:"bins"`
}

// Bin is how many waits were this long: from the end of the bin before to less than Until.
type Bin struct {
	Until time.Duration `json:"untilNs"`
	Count uint64        `json:"count"`
}

// ServiceResult is what a service had to do.
type ServiceResult struct {
	Name     string    `json:"name"`
	Requests int       `json:"requests"`        // since the lead-in
	PerCall  float64   `json:"requestsPerCall"` // for each call of a user that was counted: the amplification at this depth
	Peak     float64   `json:"peakPerS"`        // most arrivals in 200 ms
	Served   int       `json:"served"`          // by a worker; from the start on, as all below
	Wasted   int       `json:"wasted"`          // of those served, for clients who had left
	Refused  int       `json:"refused"`         // that found the queue full
	Dropped  int       `json:"dropped"`         // out of the queue
	Arrivals []int     `json:"arrivals"`        // in each bucket
	Held     []int     `json:"held"`            // requests in queues and with workers at the end of each bucket
	Capacity []float64 `json:"capacityPerS"`    // at the end of each bucket
}
