// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Result has the measurements of a client. The lead-in is not counted.
type Result struct {
	Calls    int
	Success  float64 // of the calls, 0 to 1
	Goodput  float64 // successful calls per
	Recovery sim.Recovered
	Peak     float64   // largest number of arrivals at the
	PerCall  float64   // requests at the last service for each call
	Services []float64 // likewise at each
	P50      time.Duration
	P99      time.Duration
	P999     time.Duration
	Late     time.Duration // delay of the start that 1 % of the calls reached or exceeded
}

// TooLate is the delay from which on results say more about the machine than about the client.
const TooLate = 50 * time.Millisecond

// forever is after all requests.
const forever = time.Duration(math.MaxInt64)

// Measure measures the calls that began since the lead-in, and the requests that arrived since.
func (r *Record) Measure() Result {
	s := r.Scenario
	begin := s.TroubleStart()
	whole := r.Part(begin, forever)
	last := len(r.Requests) - 1
	result := Result{
		Calls:    len(whole.Calls),
		Success:  whole.Success(),
		Goodput:  float64(whole.good()) / (s.Length() - begin).Seconds(),
		Recovery: r.recovered(),
		PerCall:  whole.PerCall(),
		P50:      whole.Latency(0.5),
		P99:      whole.Latency(0.99),
		P999:     whole.Latency(0.999),
		Late:     whole.quantile(0.99, func(c *Ended) time.Duration { return c.Late }),
	}
	most, spans := 0, map[time.Duration]int{}
	for _, at := range whole.Requests[last] {
		span := (at - begin) / sim.PeakSpan
		spans[span]++
		most = max(most, spans[span])
	}
	result.Peak = float64(most) / sim.PeakSpan.Seconds() / s.Services[last].Capacity()
	for _, times := range whole.Requests {
		result.Services = append(result.Services, sim.Ratio(len(times), len(whole.Calls)))
	}
	return result
}

// Part is a period of a record.
type Part struct {
	Calls    []Ended           // scheduled in it
	Requests [][]time.Duration // arrival times at each service, of requests that arrived in it
}

// Part returns the part in [from, to).
func (r *Record) Part(from, to time.Duration) Part {
	p := Part{Calls: r.Calls[r.first(from):r.first(to)], Requests: make([][]time.Duration, len(r.Requests))}
	for i, list := range r.Requests {
		for k := range list {
			if at := list[k].At; from <= at && at < to {
				p.Requests[i] = append(p.Requests[i], at)
			}
		}
	}
	return p
}

// first returns the index of the first call at t or later.
func (r *Record) first(t time.Duration) int {
	i, _ := slices.BinarySearchFunc(r.Calls, t, func(c Ended, t time.Duration) int { return cmp.Compare(c.At, t) })
	return i
}

func (p *Part) good() int {
	n := 0
	for i := range p.Calls {
		if p.Calls[i].OK {
			n++
		}
	}
	return n
}

// Success returns the share of the calls that succeeded, 0 to 1; 0 for none.
func (p *Part) Success() float64 { return sim.Ratio(p.good(), len(p.Calls)) }

// PerCall returns the number of requests at the last service per call; 0 without calls.
func (p *Part) PerCall() float64 { return sim.Ratio(len(p.Requests[len(p.Requests)-1]), len(p.Calls)) }

// Latency returns the time that the part q of the calls, failed ones included, does not exceed (nearest rank); 0 without
// calls.
func (p *Part) Latency(q float64) time.Duration {
	return p.quantile(q, func(c *Ended) time.Duration { return c.Took })
}

func (p *Part) quantile(q float64, of func(*Ended) time.Duration) time.Duration {
	if len(p.Calls) == 0 {
		return 0
	}
	list := make([]time.Duration, len(p.Calls))
	for i := range p.Calls {
		list[i] = of(&p.Calls[i])
	}
	slices.Sort(list)
	rank := int(math.Ceil(q * float64(len(list))))
	return list[min(max(rank, 1), len(list))-1]
}

// recovered finds the first window after the trouble in which enough calls succeed. Windows that reach beyond the end do not
// count.
func (r *Record) recovered() sim.Recovered {
	over, end, want := r.Scenario.TroubleEnd(), r.Scenario.Length(), r.Scenario.Recovery
	if over == end {
		return sim.Recovered{State: sim.RecoveryUndisturbed}
	}
	begin, i := over, r.first(over)
	for begin+want.Window <= end {
		in := Part{Calls: r.Calls[i:r.first(begin+want.Window)]}
		if n := in.good(); n > 0 && sim.Ratio(n, len(in.Calls)) >= want.Success {
			return sim.Recovered{State: sim.RecoveryReturned, Took: begin - over}
		}
		// The next candidate window begins just after the next failed call.
		for i < len(r.Calls) && r.Calls[i].OK {
			i++
		}
		if i == len(r.Calls) {
			break
		}
		begin, i = r.Calls[i].At+1, i+1
	}
	return sim.Recovered{State: sim.RecoveryNever}
}

// Series is the course of an outage for a client, in buckets of the scenario.
type Series struct {
	At       []float64 // the middle of each bucket, in seconds from the beginning of the trouble
	Calls    []float64 // scheduled to begin in it, per second
	Good     []float64 // of those, per second
	Requests []float64 // arrivals at the last service in it, per second
}

// Series returns the counts from a time to the end of the scenario. Later arrivals are left out.
func (r *Record) Series(from time.Duration) Series {
	bucket := r.Scenario.Bucket
	n := int((r.Scenario.Length() - from) / bucket)
	s := Series{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	for i := range n {
		s.At[i] = (from - r.Scenario.TroubleStart() + bucket/2 + time.Duration(i)*bucket).Seconds()
	}
	add := func(to []float64, at time.Duration) {
		if i := int((at - from) / bucket); at >= from && i < n {
			to[i] += 1 / bucket.Seconds()
		}
	}
	for i := range r.Calls {
		add(s.Calls, r.Calls[i].At)
		if r.Calls[i].OK {
			add(s.Good, r.Calls[i].At)
		}
	}
	last := r.Requests[len(r.Requests)-1]
	for i := range last {
		add(s.Requests, last[i].At)
	}
	return s
}

// Share returns the success of each bucket's calls in percent, and the buckets' times, without buckets in which no call
// began.
func (s *Series) Share() (at, percent []float64) {
	for i, n := range s.Calls {
		if n > 0 {
			at, percent = append(at, s.At[i]), append(percent, 100*s.Good[i]/n)
		}
	}
	return at, percent
}
