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

// Options control how a scenario is played. The zero value plays it as written.
type Options struct {
	Seed     uint64 // replaces the scenario's, unless 0
	Clients  int    // replaces each fleet's, unless 0
	Parallel int    // variants to play in parallel; 0: one for each processor
}

// Run plays a scenario once for each of its variants. The error is that of ctx, or names a policy's invalid budget. Run may
// be called on one Scenario in parallel.
func (s *Scenario) Run(ctx context.Context, o Options) (*Result, error) {
	s = s.withDefaults()
	variants := s.Variants
	if len(variants) == 0 {
		variants = []Variant{{Name: s.Title}}
	}
	r := &Result{Scenario: s, Seed: cmp.Or(o.Seed, s.Seed), Bucket: s.Bucket, Runs: make([]Played, len(variants))}
	for i := range variants {
		if err := s.checkSize(cmp.Or(o.Clients, variants[i].Clients)); err != nil {
			return nil, fmt.Errorf("sim: %s: variant %q: %w", s.Title, variants[i].Name, err)
		}
	}
	var (
		all   sync.WaitGroup
		slots = make(chan struct{}, cmp.Or(max(o.Parallel, 0), runtime.GOMAXPROCS(0)))
		errs  = make([]error, len(variants))
	)
	for i, v := range variants {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			v.Clients = cmp.Or(o.Clients, v.Clients)
			r.Runs[i], errs[i] = s.runVariant(ctx, &v, r.Seed)
		})
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// checkSize refuses a scenario that would exhaust the memory, or run for hours. clients is the number of clients of each fleet; 0:
// the fleet's own.
func (s *Scenario) checkSize(clients int) error {
	const (
		mostConnections, mostCalls = 100e6, 1e9
		mostStarts                 = 10e6 // of processes that come and go
		mostParts                  = 10e6 // of the recovery's windows, 16 bytes each
		mostSeries                 = 50e6 // values of all time series, 8 bytes each
		mostProcesses              = 1e6  // backends of all services
	)
	services, fleets := float64(len(s.Services)), float64(len(s.Fleets))
	parts := fleets * float64((s.Length()-s.TroubleEnd())/max(s.Recovery.Window/recoveryParts, 1))
	series := float64(max(len(s.Variants), 1)) * float64(s.Length()/s.Bucket) * (3*services + 2*fleets)
	processes := 0.0
	for i := range s.Services {
		processes += float64(s.Services[i].Backends)
	}
	var connections, calls, starts float64
	for _, c := range s.calls() {
		n := c.processes
		if c.fleet {
			n = cmp.Or(clients, n)
		}
		connections += float64(cmp.Or(c.Clients, n, 1)) * float64(c.connections())
	}
	for i := range s.Fleets {
		for _, p := range s.Phases {
			calls += s.Fleets[i].Rate * p.Load * p.Length.Seconds()
		}
		if life := s.Fleets[i].Lifetime; life > 0 {
			starts += float64(cmp.Or(clients, s.Fleets[i].Clients, 1)) * s.Length().Seconds() / life.Seconds()
		}
	}
	switch {
	case connections > mostConnections:
		return fmt.Errorf("has too many connections of all processes, %.4g; must be at most %.4g", connections, mostConnections)
	case parts > mostParts:
		return fmt.Errorf("has too many parts of recovery windows, %.4g; must be at most %.4g: make recovery.window longer, "+
			"or the phases after the trouble shorter", parts, mostParts)
	case series > mostSeries:
		return fmt.Errorf("has too many values in its time series, %.4g; must be at most %.4g: make bucket longer", series, mostSeries)
	case processes > mostProcesses:
		return fmt.Errorf("has too many backends of all services, %.4g; must be at most %.4g", processes, mostProcesses)
	case calls > mostCalls:
		return fmt.Errorf("has too many calls, %.4g; must be at most %.4g", calls, mostCalls)
	case starts > mostStarts:
		return fmt.Errorf("has too many processes that start, %.4g; must be at most %.4g", starts, mostStarts)
	}
	return nil
}

// withDefaults returns the scenario with the defaults of a file.
func (s *Scenario) withDefaults() *Scenario {
	c := *s
	c.Recovery = cmp.Or(s.Recovery, defaultRecovery)
	c.Bucket = cmp.Or(s.Bucket, s.bucket())
	return &c
}

// runVariant plays one variant.
func (s *Scenario) runVariant(ctx context.Context, v *Variant, seed uint64) (Played, error) {
	w, err := newWorld(s, v, seed)
	if err != nil {
		return Played{}, err
	}
	if err := w.playAll(ctx); err != nil {
		return Played{}, err
	}
	return w.worldResult(v.Name), nil
}

// Result is the outcome of a scenario. Its JSON gives times in nanoseconds.
type Result struct {
	Scenario *Scenario     `json:"-"`
	Seed     uint64        `json:"seed"`
	Bucket   time.Duration `json:"bucketNs"` // of the series
	Runs     []Played      `json:"runs"`     // one for each variant, in their order
}

// Played is the outcome of one variant.
type Played struct {
	Name     string          `json:"name"`
	Fleets   []FleetResult   `json:"fleets"`
	Services []ServiceResult `json:"services"`
	Events   uint64          `json:"events"` // number of events
}

// FleetResult is the outcome of a fleet's calls. The calls of the lead-in are only in the series.
type FleetResult struct {
	Name       string                `json:"name"`
	Clients    int                   `json:"clients"`
	Calls      int                   `json:"calls"`
	Success    float64               `json:"success"`         // of the calls, 0 to 1
	PerCall    float64               `json:"attemptsPerCall"` // without those of the services' calls
	Mean       time.Duration         `json:"meanNs"`
	P50        time.Duration         `json:"p50Ns"` // of all calls, failed ones included; like the others at most 1/128 too long
	P95        time.Duration         `json:"p95Ns"`
	P99        time.Duration         `json:"p99Ns"`
	P999       time.Duration         `json:"p999Ns"`
	Recovery   Recovered             `json:"recovery"`
	Refused    int                   `json:"refused"`          // calls refused before their first attempt
	Reasons    map[policy.Reason]int `json:"reasons"`          // why the calls got no other attempt
	Extra      int                   `json:"extra"`            // attempts sent after the first
	Begun      []int                 `json:"begun"`            // calls, in each bucket
	Succeeded  []int                 `json:"succeeded"`        // of those
	ByCall     []CallResult          `json:"byCall,omitempty"` // of a fleet with several calls, in their order
	Unfinished int                   `json:"unfinished"`       // calls that never ended: they lost a message and had no deadline
}

// CallResult is the outcome of one of a fleet's calls.
type CallResult struct {
	Service string  `json:"service"`
	Method  string  `json:"method"`
	Calls   int     `json:"calls"`
	Success float64 `json:"success"` // of the calls, 0 to 1
	PerCall float64 `json:"attemptsPerCall"`
}

// Recovered is how long a fleet took to recover after the trouble.
type Recovered struct {
	State RecoveryState `json:"state"`
	Took  time.Duration `json:"tookNs"` // if it recovered
}

// String returns the time in seconds, "never", or a dash if there was nothing to recover from.
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

// RecoveryState is whether a fleet recovered.
type RecoveryState string

// The states.
const (
	RecoveryUndisturbed RecoveryState = "undisturbed" // the scenario has no phase after the trouble
	RecoveryReturned    RecoveryState = "returned"
	RecoveryNever       RecoveryState = "never" // within the scenario
)

// ServiceResult is the load of a service.
type ServiceResult struct {
	Name     string    `json:"name"`
	Requests int       `json:"requests"`        // since the lead-in
	PerCall  float64   `json:"requestsPerCall"` // per counted call of a user: the amplification at this depth
	Peak     float64   `json:"peakPerS"`        // most arrivals in 200 ms
	Served   int       `json:"served"`          // by a worker; from the start, like all below
	Wasted   int       `json:"wasted"`          // of those served, for clients that had left
	Refused  int       `json:"refused"`         // because the queue was full
	Dropped  int       `json:"dropped"`         // because their clients had left
	Arrivals []int     `json:"arrivals"`        // in each bucket
	Held     []int     `json:"held"`            // requests in queues and with workers at the end of each bucket
	Capacity []float64 `json:"capacityPerS"`    // at the end of each bucket
}
