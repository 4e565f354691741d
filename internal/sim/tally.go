// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/histogram"
	"github.com/stagger-go/stagger/policy"
)

// serviceTally is what a service has had to do.
type serviceTally struct {
	requests int // that have arrived
	extra    int // of them, that were not the first attempt of their call
	counted  int // that have arrived since the lead-in
	served   int // to the end, by a worker
	wasted   int // of them, for clients who had left
	refused  int // that found the queue full
	dropped  int // out of the queue, since their clients had left
	arrivals []int
	held     []int // at the end of each bucket
	capacity []float64
	peak     rush
}

// rush is the most arrivals in a stretch of time.
type rush struct {
	stretch time.Duration
	at      time.Duration
	n, most int
}

func (r *rush) add(at time.Duration) {
	if at/r.stretch != r.at {
		r.at, r.n = at/r.stretch, 0
	}
	r.n++
	r.most = max(r.most, r.n)
}

// fleetTally is what has become of a fleet's calls.
type fleetTally struct {
	world    *world
	calls    int // begun
	ended    int
	counted  int // of those begun since the lead-in
	good     int // of those counted, that succeeded
	took     histogram.Histogram
	delays   histogram.Histogram // before extra attempts
	reasons  map[policy.Reason]int
	begun    []int // in each bucket
	succeed  []int // of those begun in each bucket
	fine     []int // begun and succeeded since the trouble, in each small part of the recovery's window
	all      []int
	extra    int // attempts after the first that were decided on
	attempts int // of the calls counted
}

func (t *fleetTally) begins(c *call) {
	t.calls++
	t.world.note(t.begun, c.start)
}

// ends takes in a call that has ended.
func (t *fleetTally) ends(c *call, end *attempts.End, ok bool) {
	w := t.world
	t.ended++
	if ok {
		w.note(t.succeed, c.start)
	}
	if c.start < w.from {
		return
	}
	t.counted++
	t.attempts += end.Attempts
	t.reasons[end.Reason]++
	t.took.Add(w.now - c.start)
	if ok {
		t.good++
	}
	if i := w.since(c.start); i >= 0 {
		t.all[i]++
		if ok {
			t.fine[i]++
		}
	}
}

// decided takes in a decision.
func (t *fleetTally) decided(c *call, d policy.Decision) {
	if c.start < t.world.from {
		return
	}
	if d.Retry {
		t.extra++
		t.delays.Add(d.Delay)
	}
}
