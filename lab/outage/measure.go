// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/sim"
)

// Result has the measurements of a client. The lead-in is not counted.
type Result struct {
	Calls    int
	Success  float64   // of the calls, 0 to 1
	Fleets   []float64 // the same, of each fleet's calls
	Goodput  float64   // successful calls per second
	Recovery sim.Recovered
	Peak     float64 // largest number of arrivals at the last service in [sim.PeakSpan], in times its capacity
	PerCall  float64 // requests at the last service for each call
	P50      time.Duration
	P99      time.Duration
	P999     time.Duration
}

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
	}
	for i := range s.Fleets {
		of := Part{Calls: slices.DeleteFunc(slices.Clone(whole.Calls), func(c Ended) bool { return c.Fleet != i })}
		result.Fleets = append(result.Fleets, of.Success())
	}
	most, spans := 0, map[time.Duration]int{}
	for _, at := range whole.Requests[last] {
		span := (at - begin) / sim.PeakSpan
		spans[span]++
		most = max(most, spans[span])
	}
	result.Peak = float64(most) / sim.PeakSpan.Seconds() / s.Services[last].Capacity()
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
	if len(p.Calls) == 0 {
		return 0
	}
	list := make([]time.Duration, len(p.Calls))
	for i := range p.Calls {
		list[i] = p.Calls[i].Took
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

// Columns are the names of the figures in a row of a table.
var Columns = []string{
	"success\n%", "goodput\ncalls/s", "time to\nrecover, s", "peak arrivals\n/ capacity", "requests\nper call", "p50\nms", "p99\nms", "p999\nms",
}

// Row returns the measurements as a row of a table, after a client's name.
func (r *Result) Row(name string) []string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) }
	return []string{
		name, fmt.Sprintf("%.2f", 100*r.Success), fmt.Sprintf("%.0f", r.Goodput), r.Recovery.String(), fmt.Sprintf("%.1f", r.Peak),
		fmt.Sprintf("%.2f", r.PerCall), ms(r.P50), ms(r.P99), ms(r.P999),
	}
}
