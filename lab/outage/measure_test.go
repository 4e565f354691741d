// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/sim"
)

// every returns one call per millisecond of the pulse; bad marks those that fail.
func every(bad func(at time.Duration) bool) []Ended {
	var calls []Ended
	for at := time.Duration(0); at < 3*time.Second; at += ms {
		calls = append(calls, Ended{Call: Call{At: at}, Took: at / 1000, OK: !bad(at)})
	}
	return calls
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	r := Record{Scenario: pulse(), Calls: every(func(at time.Duration) bool { return at < 1500*ms })}
	var requests []Request
	for _, c := range r.Calls {
		requests = append(requests, Request{At: c.At})
		if !c.OK {
			requests = append(requests, Request{At: c.At}, Request{At: c.At}) // two extra attempts
		}
	}
	r.Requests = [][]Request{{{}}, requests} // of two services the last counts
	r.Scenario.Services = append(r.Scenario.Services, r.Scenario.Services[0])
	got := r.Measure()
	if got.Calls != 2000 || got.Success != 0.75 || got.Goodput != 750 || got.PerCall != 1.5 {
		t.Errorf("%+v; want 2000 calls, success 0.75, goodput 750, 1.5 requests per call", got)
	}
	if got.Peak != 3 { // 3000 per second, at a capacity of 1000
		t.Errorf("peak %v capacities; want 3", got.Peak)
	}
	if got.P50 != 1999*time.Microsecond || got.P99 != 2979*time.Microsecond || got.P999 != 2997*time.Microsecond {
		t.Errorf("p50 %v, p99 %v, p999 %v; want 1.999ms, 2.979ms, 2.997ms", got.P50, got.P99, got.P999)
	}
	if got.Recovery != (sim.Recovered{State: sim.RecoveryReturned}) {
		t.Errorf("recovery %+v; want at once", got.Recovery)
	}
}

func TestRecovered(t *testing.T) {
	t.Parallel()
	const over = 2 * time.Second
	never := sim.Recovered{State: sim.RecoveryNever}
	back := func(took time.Duration) sim.Recovered { return sim.Recovered{State: sim.RecoveryReturned, Took: took} }
	for name, row := range map[string]struct {
		bad  func(at time.Duration) bool
		want sim.Recovered
	}{
		"nothing fails":        {func(time.Duration) bool { return false }, back(0)},
		"only before":          {func(at time.Duration) bool { return at < over }, back(0)},
		"until 300 ms":         {func(at time.Duration) bool { return at <= over+300*ms }, back(298*ms + 1)}, // two of 250 may fail
		"everything":           {func(time.Duration) bool { return true }, never},
		"too late for one":     {func(at time.Duration) bool { return at <= over+760*ms }, never},
		"one of 125, or 0.8 %": {func(at time.Duration) bool { return at%(125*ms) == 0 }, back(0)},
		"one of 50, or 2 %":    {func(at time.Duration) bool { return at%(50*ms) == 0 }, never},
	} {
		r := Record{Scenario: pulse(), Calls: every(row.bad)}
		if got := r.recovered(); got != row.want {
			t.Errorf("%s: %+v; want %+v", name, got, row.want)
		}
	}
	r := Record{Scenario: pulse(), Calls: every(func(time.Duration) bool { return false })}
	r.Scenario.Phases = r.Scenario.Phases[:2]
	if got := r.recovered(); got.State != sim.RecoveryUndisturbed {
		t.Errorf("an outage that ends in trouble: %+v; want nothing to recover from", got)
	}
}
