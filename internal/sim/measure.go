// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/histogram"
)

const (
	recoveryParts = 25                     // of its window, in which calls are counted together
	peakStretch   = 200 * time.Millisecond // of arrivals
)

// result reads what has been counted.
func (w *world) result(name string) Played {
	p := Played{Name: name, Events: w.passed}
	calls := 0
	for _, s := range w.sources {
		p.Fleets = append(p.Fleets, s.result())
		calls += s.tally.counted
	}
	for _, s := range w.services {
		t := &s.tally
		p.Services = append(p.Services, ServiceResult{
			Name: s.spec.Name, Requests: t.counted, PerCall: part(t.counted, calls),
			Peak:   float64(t.peak.most) / peakStretch.Seconds(),
			Served: t.served, Wasted: t.wasted, Refused: t.refused, Dropped: t.dropped,
			Arrivals: t.arrivals, Held: t.held, Capacity: t.capacity,
		})
	}
	return p
}

func (s *source) result() FleetResult {
	t, w := &s.tally, s.world
	r := FleetResult{
		Name: s.spec.Name, Clients: len(s.link.processes.list), Calls: t.counted, Success: part(t.good, t.counted),
		PerCall: part(t.attempts, t.counted), Mean: t.took.Mean(), P50: t.took.Quantile(0.5), P99: t.took.Quantile(0.99),
		P999: t.took.Quantile(0.999), Reasons: maps.Clone(t.reasons), Delays: readDelays(&t.delays),
		Begun: t.begun, Succeeded: t.succeed, Unfinished: t.calls - t.ended,
	}
	if counted := w.until - w.from; counted > 0 {
		r.Goodput = float64(t.good) / counted.Seconds()
	}
	r.Recovery = t.recovered()
	return r
}

// recovered finds the first window after the trouble in which the calls succeed as they should. Windows that
// reach beyond the end do not count.
func (t *fleetTally) recovered() Recovered {
	w := t.world
	if w.over == w.until {
		return Recovered{State: Undisturbed}
	}
	for i := 0; i+recoveryParts < len(t.all); i++ {
		if good, all := sum(t.fine[i:i+recoveryParts]), sum(t.all[i:i+recoveryParts]); good > 0 && part(good, all) >= w.scenario.Recovery.Success {
			return Recovered{Returned, time.Duration(i) * w.part}
		}
	}
	return Recovered{State: Never}
}

func readDelays(h *histogram.Histogram) Delays {
	d := Delays{Count: h.Count(), Mean: h.Mean(), P50: h.Quantile(0.5), P99: h.Quantile(0.99)}
	for b := range h.Bins() {
		d.Bins = append(d.Bins, Bin{b.Until, b.Count})
	}
	return d
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func sum(list []int) int {
	n := 0
	for v := range slices.Values(list) {
		n += v
	}
	return n
}
