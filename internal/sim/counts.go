// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/policy"
)

const recoveryParts = 25 // of its window; calls in one part are counted together

// PeakSpan is the time in which arrivals are counted for the peak.
const PeakSpan = 200 * time.Millisecond

// serviceCounts are the counts of a service.
type serviceCounts struct {
	requests int // arrived
	extra    int // of these, not the first attempt of their call
	counted  int // arrived since the lead-in
	served   int // completed by a worker
	wasted   int // of these, for clients that had left
	refused  int // because the queue was full
	dropped  int // from the queue, because their clients had left
	peak     peak
	arrivals []int     // in each bucket
	held     []int     // at the end of each bucket
	capacity []float64 // at the end of each bucket
}

func newServiceCounts(buckets int) serviceCounts {
	return serviceCounts{arrivals: make([]int, buckets), held: make([]int, buckets), capacity: make([]float64, buckets)}
}

// peak is the largest number of arrivals in a [PeakSpan].
type peak struct {
	span   time.Duration // index of the last one, from 0
	n, max int
}

func (p *peak) countArrival(at time.Duration) {
	if span := at / PeakSpan; span != p.span {
		p.span, p.n = span, 0
	}
	p.n++
	p.max = max(p.max, p.n)
}

// fleetCounts are the counts of a fleet's calls.
type fleetCounts struct {
	world       *world
	calls       int // begun
	over        int
	counted     int // of those begun since the lead-in
	succeeded   int // of those counted
	attempts    int // of those counted
	extra       int // attempts sent after the first
	refused     int // of those counted, without an attempt
	took        evidence.Histogram
	reasons     map[policy.Reason]int
	begunIn     []int // in each bucket
	succeededIn []int // of those begun in each bucket
	recovery    []recoveryPart
}

// callCounts are the counts of one of a fleet's calls, since the lead-in.
type callCounts struct{ calls, succeeded, attempts int }

// recoveryPart counts the calls that began in a small part of the recovery's window.
type recoveryPart struct{ calls, succeeded int }

func newFleetCounts(w *world) fleetCounts {
	c := fleetCounts{
		world: w, reasons: map[policy.Reason]int{},
		begunIn: make([]int, w.buckets()), succeededIn: make([]int, w.buckets()),
	}
	if w.recovers < w.until {
		c.recovery = make([]recoveryPart, w.recoveryPart(w.until)+1)
	}
	return c
}

// begun counts the start of a call.
func (f *fleetCounts) begun(c *call) {
	f.calls++
	f.world.addTo(f.begunIn, c.start)
}

// countEnd counts the end of a call.
func (f *fleetCounts) countEnd(c *call, end *attempts.End, ok bool) {
	w := f.world
	f.over++
	if ok {
		w.addTo(f.succeededIn, c.start)
	}
	if c.start < w.from {
		return
	}
	f.counted++
	f.attempts += end.Attempts
	one := &c.link.counts
	one.calls++
	one.attempts += end.Attempts
	f.reasons[end.Reason]++
	if end.Attempts == 0 && end.Reason == policy.ReasonOverloaded {
		f.refused++
	}
	f.took.Add(w.now - c.start)
	if ok {
		f.succeeded++
		one.succeeded++
	}
	if i := w.recoveryPart(c.start); i >= 0 {
		f.recovery[i].calls++
		if ok {
			f.recovery[i].succeeded++
		}
	}
}

// countExtra counts an attempt after the first of a call, which is sent.
func (f *fleetCounts) countExtra(c *call) {
	if c.start >= f.world.from {
		f.extra++
	}
}

// worldResult returns the counts as a result.
func (w *world) worldResult(name string) Played {
	p := Played{Name: name, Events: w.handled}
	calls := 0
	for _, f := range w.fleets {
		p.Fleets = append(p.Fleets, f.fleetResult())
		calls += f.counts.counted
	}
	for _, s := range w.services {
		c := &s.counts
		p.Services = append(p.Services, ServiceResult{
			Name: s.spec.Name, Requests: c.counted, PerCall: Ratio(c.counted, calls),
			Peak:   float64(c.peak.max) / PeakSpan.Seconds(),
			Served: c.served, Wasted: c.wasted, Refused: c.refused, Dropped: c.dropped,
			Arrivals: c.arrivals, Held: c.held, Capacity: c.capacity,
		})
	}
	return p
}

func (f *fleet) fleetResult() FleetResult {
	c := &f.counts
	r := FleetResult{
		Name: f.spec.Name, Clients: f.clients, Calls: c.counted, Success: Ratio(c.succeeded, c.counted),
		PerCall: Ratio(c.attempts, c.counted),
		Mean:    c.took.Mean(), P50: c.took.Quantile(0.5), P95: c.took.Quantile(0.95), P99: c.took.Quantile(0.99),
		P999: c.took.Quantile(0.999), Reasons: maps.Clone(c.reasons), Extra: c.extra,
		Begun: c.begunIn, Succeeded: c.succeededIn, Unfinished: c.calls - c.over, Recovery: c.recovered(),
		Refused: c.refused,
	}
	if len(f.links) > 1 {
		for _, l := range f.links {
			c := &l.counts
			r.ByCall = append(r.ByCall, CallResult{l.spec.Service, l.spec.Method, c.calls, Ratio(c.succeeded, c.calls), Ratio(c.attempts, c.calls)})
		}
	}
	return r
}

// recovered finds the first window after the trouble in which enough calls succeed. Windows that reach beyond the end do not
// count.
func (f *fleetCounts) recovered() Recovered {
	w := f.world
	if w.recovers == w.until {
		return Recovered{State: RecoveryUndisturbed}
	}
	for i := 0; i+recoveryParts < len(f.recovery); i++ {
		var window recoveryPart
		for p := range slices.Values(f.recovery[i : i+recoveryParts]) {
			window.calls += p.calls
			window.succeeded += p.succeeded
		}
		if window.succeeded > 0 && Ratio(window.succeeded, window.calls) >= w.scenario.Recovery.Success {
			return Recovered{RecoveryReturned, time.Duration(i) * w.partLength}
		}
	}
	return Recovered{State: RecoveryNever}
}

// Ratio returns n/of, or 0 if of is 0.
func Ratio(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
