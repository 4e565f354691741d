// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// result is what was measured of a client in a storm. The lead-in is not counted.
type result struct {
	calls    int
	success  float64 // of the calls, 0 to 1
	goodput  float64 // calls that succeed, per second
	recovery recovery
	peak     float64 // most arrivals at the servers in a bucket, in capacities
	perCall  float64 // requests at the servers for each call
	p50      time.Duration
	p99      time.Duration
	p999     time.Duration
	late     time.Duration // 1 % of the calls began later than they should by this or more
	services []float64     // perCall at each service of the chain, from the first
	series   series
	verdicts []verdict
}

// What is counted together.
const (
	bucket = 200 * time.Millisecond // of arrivals
	window = 250 * time.Millisecond // of calls, for the recovery
	good   = 0.99                   // success in a window of a client that has recovered
)

func measure(s storm, r *record) result {
	calls := r.calls[first(r.calls, s.from()):]
	last := r.requests[len(r.requests)-1] // where the trouble is
	requests := since(last, s.from())
	took := make([]time.Duration, len(calls))
	late := make([]time.Duration, len(calls))
	for i, c := range calls {
		took[i], late[i] = c.took, c.late
	}
	slices.Sort(took)
	slices.Sort(late)
	well := successes(calls)
	services := make([]float64, len(r.requests))
	for i, list := range r.requests {
		services[i] = ratio(len(since(list, s.from())), len(calls))
	}
	return result{
		services: services,
		series:   follow(s, r),
		calls:    len(calls),
		success:  ratio(well, len(calls)),
		goodput:  float64(well) / (s.length() - s.from()).Seconds(),
		recovery: recovered(s, calls),
		peak:     peak(requests) / s.shape().capacity(),
		perCall:  ratio(len(requests), len(calls)),
		p50:      quantile(took, 0.5),
		p99:      quantile(took, 0.99),
		p999:     quantile(took, 0.999),
		late:     quantile(late, 0.99),
	}
}

// first is the place of the first call at from or later. The calls are in order.
func first(calls []call, from time.Duration) int {
	i, _ := slices.BinarySearchFunc(calls, from, func(c call, at time.Duration) int { return cmp.Compare(c.due, at) })
	return i
}

// since returns the times at from or later, counted from there.
func since(times []time.Duration, from time.Duration) []time.Duration {
	var list []time.Duration
	for _, t := range times {
		if t >= from {
			list = append(list, t-from)
		}
	}
	return list
}

func successes(calls []call) int {
	n := 0
	for _, c := range calls {
		if c.ok {
			n++
		}
	}
	return n
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// peak is the most of the times that fall into one bucket, per second.
func peak(times []time.Duration) float64 {
	buckets := map[time.Duration]int{}
	most := 0
	for _, t := range times {
		buckets[t/bucket]++
		most = max(most, buckets[t/bucket])
	}
	return float64(most) / bucket.Seconds()
}

// quantile is what the part q of the sorted times does not exceed (nearest rank); 0 for none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
