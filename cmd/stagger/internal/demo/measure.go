// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// result is what the tables say of a contender.
type result struct {
	name     string
	success  float64            // of all calls, 0 to 1
	phases   map[string]float64 // success of the calls that began in a phase, by its label
	perCall  float64            // requests at the servers for each call
	outage   float64            // the same in the total outage
	peak     float64            // most arrivals in a bucket, in capacities
	recovery time.Duration      // from the end of the pulse
	returned bool               // it did recover
	p99      time.Duration
	twice    int // orders created twice
}

// What is counted together.
const (
	bucket = 200 * time.Millisecond // of arrivals
	window = 250 * time.Millisecond // of calls, for the recovery
	well   = 0.99                   // success in a window of a client that has recovered
)

func measure(d day, name string, r *record) result {
	from, to := d.span("outage")
	_, pulse := d.span("pulse")
	out := result{
		name: name, success: success(r.calls), phases: map[string]float64{},
		perCall: ratio(len(r.requests), len(r.calls)),
		outage:  ratio(count(r.requests, from, to), len(between(r.calls, from, to))),
		peak:    slices.Max(rates(r.requests, d.length(), bucket)) / d.fleet.capacity(),
		p99:     quantile(r.calls, 0.99),
		twice:   r.twice,
	}
	for _, label := range d.labels() {
		from, to := d.span(label)
		out.phases[label] = success(between(r.calls, from, to))
	}
	out.recovery, out.returned = recovery(between(r.calls, pulse, d.length()), pulse, d.length())
	return out
}

// between returns the calls that began in [from, to), in order of their beginning.
func between(calls []call, from, to time.Duration) []call {
	var in []call
	for _, c := range calls {
		if from <= c.at && c.at < to {
			in = append(in, c)
		}
	}
	slices.SortFunc(in, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	return in
}

// count is how many of the times lie in [from, to).
func count(times []time.Duration, from, to time.Duration) int {
	n := 0
	for _, t := range times {
		if from <= t && t < to {
			n++
		}
	}
	return n
}

// success is the part of the calls that ended well; 0 for none.
func success(calls []call) float64 {
	n := 0
	for _, c := range calls {
		if c.ok {
			n++
		}
	}
	return ratio(n, len(calls))
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// rates is how many of the times fall into each part of length width, per second.
func rates(times []time.Duration, length, width time.Duration) []float64 {
	list := make([]float64, (length+width-1)/width)
	for _, t := range times {
		if t >= 0 && t < length {
			list[t/width] += float64(time.Second) / float64(width)
		}
	}
	return list
}

// quantile is the latency that the part q of the calls does not exceed (nearest rank).
func quantile(calls []call, q float64) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	took := make([]time.Duration, len(calls))
	for i, c := range calls {
		took[i] = c.took
	}
	slices.Sort(took)
	rank := int(math.Ceil(q * float64(len(took))))
	return took[min(max(rank, 1), len(took))-1]
}

// recovery is how long after from the first window begins whose calls succeed as they should. The
// calls are in order; windows that reach past end do not count.
func recovery(calls []call, from, end time.Duration) (time.Duration, bool) {
	// A window that begins just after a failed call is as good as any that begins later.
	begins := []time.Duration{from}
	for _, c := range calls {
		if !c.ok {
			begins = append(begins, c.at+1)
		}
	}
	for _, begin := range begins {
		in := between(calls, begin, begin+window)
		if begin+window <= end && len(in) > 0 && success(in) >= well {
			return begin - from, true
		}
	}
	return 0, false
}
