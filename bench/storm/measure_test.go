// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

// every returns a call each millisecond of the sketch; bad says which fail.
func every(bad func(at time.Duration) bool) []call {
	var calls []call
	for at := time.Duration(0); at < sketch().length(); at += ms {
		calls = append(calls, call{due: at, took: at / 1000, ok: !bad(at)})
	}
	return calls
}

func TestTheLeadInIsNotMeasured(t *testing.T) {
	t.Parallel()
	r := record{calls: every(func(at time.Duration) bool { return at < 1500*ms })}
	r.calls[1234].late = 7 * ms
	var requests []time.Duration
	for _, c := range r.calls {
		requests = append(requests, c.due)
		if !c.ok {
			requests = append(requests, c.due, c.due) // two extra attempts
		}
	}
	r.requests = [][]time.Duration{{0}, requests} // of two services the last counts
	got := measure(sketch(), &r)
	if got.calls != 2000 || got.success != 0.75 || got.goodput != 750 || got.perCall != 1.5 {
		t.Errorf("%d calls, success %v, goodput %v, %v requests per call; want 2000, 0.75, 750, 1.5",
			got.calls, got.success, got.goodput, got.perCall)
	}
	if got.peak != 3 { // 3000 per second, at a capacity of 1000
		t.Errorf("peak %v capacities; want 3", got.peak)
	}
	if got.p50 != 1999*time.Microsecond || got.p99 != 2979*time.Microsecond || got.p999 != 2997*time.Microsecond {
		t.Errorf("p50 %v, p99 %v, p999 %v; want 1.999ms, 2.979ms, 2.997ms", got.p50, got.p99, got.p999)
	}
	if got.recovery != (recovery{returned, 0}) || got.late != 0 {
		t.Errorf("recovery %+v, late %v; want at once, and 0 for one late call of 2000", got.recovery, got.late)
	}
}

func TestNothingMeasuredIsNothing(t *testing.T) {
	t.Parallel()
	got := measure(sketch(), &record{requests: [][]time.Duration{nil}})
	if got.success != 0 || got.perCall != 0 || got.peak != 0 || got.p999 != 0 || got.recovery.state != never {
		t.Errorf("%+v; want zeros, and no recovery", got)
	}
}

func TestRecoveryIsWhereTheFirstGoodWindowBegins(t *testing.T) {
	t.Parallel()
	const over = 2 * time.Second
	for name, row := range map[string]struct {
		bad  func(at time.Duration) bool
		want recovery
	}{
		"nothing fails":        {func(time.Duration) bool { return false }, recovery{returned, 0}},
		"only before":          {func(at time.Duration) bool { return at < over }, recovery{returned, 0}},
		"until 300 ms":         {func(at time.Duration) bool { return at <= over+300*ms }, recovery{returned, 298*ms + 1}}, // two of 250 may fail
		"everything":           {func(time.Duration) bool { return true }, recovery{state: never}},
		"too late for one":     {func(at time.Duration) bool { return at <= over+760*ms }, recovery{state: never}},
		"one of 125, or 0.8 %": {func(at time.Duration) bool { return at%(125*ms) == 0 }, recovery{returned, 0}},
		"one of 50, or 2 %":    {func(at time.Duration) bool { return at%(50*ms) == 0 }, recovery{state: never}},
	} {
		if got := recovered(sketch(), every(row.bad)); got != row.want {
			t.Errorf("%s: %+v; want %+v", name, got, row.want)
		}
	}
	s := sketch()
	s.phases = s.phases[:2]
	if got := recovered(s, every(func(time.Duration) bool { return false })); got.state != undisturbed {
		t.Errorf("a storm that ends in trouble: %+v; want nothing to recover from", got)
	}
}
