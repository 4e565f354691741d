// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// series is a client's way through a storm, in buckets, from a second before the trouble to the storm's
// end.
type series struct {
	at       []float64 // the middle of each bucket, in seconds from the beginning of the trouble
	calls    []float64 // that began in it, per second
	good     []float64 // of those, per second
	requests []float64 // that arrived at the last service in it, per second
}

// before is how much of the lead-in is shown.
const before = time.Second

// follow counts calls by when they should begin. What arrives after the storm's end is left out.
func follow(s storm, r *record) series {
	begin := max(s.from()-before, 0)
	n := int((s.length() - begin) / bucket)
	line := series{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	for i := range n {
		line.at[i] = (begin - s.from() + bucket/2 + time.Duration(i)*bucket).Seconds()
	}
	add := func(to []float64, at time.Duration) {
		if i := int((at - begin) / bucket); at >= begin && i < n {
			to[i] += 1 / bucket.Seconds()
		}
	}
	for _, c := range r.calls {
		add(line.calls, c.due)
		if c.ok {
			add(line.good, c.due)
		}
	}
	for _, at := range r.requests[len(r.requests)-1] {
		add(line.requests, at)
	}
	return line
}

// share is the success of the calls of each bucket in percent, and where it was measured: nowhere
// where no call began.
func (l series) share() (at, percent []float64) {
	for i, n := range l.calls {
		if n > 0 {
			at, percent = append(at, l.at[i]), append(percent, 100*l.good[i]/n)
		}
	}
	return at, percent
}
