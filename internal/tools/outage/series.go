// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import "time"

// Series is the course of an outage for a client, in buckets of the scenario.
type Series struct {
	At       []float64 // the middle of each bucket, in seconds from the beginning of the trouble
	Calls    []float64 // that should begin in it, per second
	Good     []float64 // of those, per second
	Requests []float64 // that arrived at the last service in it, per second
}

// Series counts from a time on to the end of the scenario. What arrives later is left out.
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

// Share is the success of the calls of each bucket in percent, and where it was measured: only where a call began.
func (s *Series) Share() (at, percent []float64) {
	for i, n := range s.Calls {
		if n > 0 {
			at, percent = append(at, s.At[i]), append(percent, 100*s.Good[i]/n)
		}
	}
	return at, percent
}
