// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestRatesCountWhatFallsIntoEachBucket(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		times []time.Duration
		want  []float64
	}{
		"none":               {nil, []float64{0, 0, 0}},
		"edges":              {[]time.Duration{0, 199 * ms, 200 * ms, 499 * ms}, []float64{10, 5, 5}},
		"outside of the day": {[]time.Duration{-1, 500 * ms, time.Hour}, []float64{0, 0, 0}},
	} {
		if got := rates(row.times, 500*ms, 200*ms); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v; want %v per second", name, got, row.want)
		}
	}
}

func TestAQuantileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]call, 100)
	for i := range hundred {
		hundred[i].took = time.Duration(100-i) * ms // 1 to 100 ms, the longest first
	}
	for name, row := range map[string]struct {
		calls []call
		q     float64
		want  time.Duration
	}{
		"none":      {nil, 0.99, 0},
		"one":       {hundred[:1], 0.99, 100 * ms},
		"p99":       {hundred, 0.99, 99 * ms},
		"median":    {hundred, 0.5, 50 * ms},
		"rounds up": {hundred[:3], 0.5, 99 * ms},
		"lowest":    {hundred, 0, ms},
		"highest":   {hundred, 1, 100 * ms},
	} {
		if got := quantile(row.calls, row.q); got != row.want {
			t.Errorf("%s: %v; want %v", name, got, row.want)
		}
	}
}

// every returns a call each millisecond of [0, length); bad says which fail.
func every(length time.Duration, bad func(at time.Duration) bool) []call {
	var calls []call
	for at := time.Duration(0); at < length; at += ms {
		calls = append(calls, call{at: at, ok: !bad(at)})
	}
	return calls
}

func TestRecoveryIsWhereTheFirstGoodWindowBegins(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bad      func(at time.Duration) bool
		want     time.Duration
		returned bool
	}{
		"nothing fails":        {func(time.Duration) bool { return false }, 0, true},
		"until 300 ms":         {func(at time.Duration) bool { return at <= 300*ms }, 298*ms + 1, true}, // two of 250 may fail
		"everything":           {func(time.Duration) bool { return true }, 0, false},
		"too late for one":     {func(at time.Duration) bool { return at <= 760*ms }, 0, false},
		"one of 125, or 0.8 %": {func(at time.Duration) bool { return at%(125*ms) == 0 }, 0, true},
		"one of 50, or 2 %":    {func(at time.Duration) bool { return at%(50*ms) == 0 }, 0, false},
	} {
		got, returned := recovery(every(time.Second, row.bad), 0, time.Second)
		if got != row.want || returned != row.returned {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, returned, row.want, row.returned)
		}
	}
}

func TestMeasureTellsThePhasesApart(t *testing.T) {
	t.Parallel()
	d := day{
		fleet: shape{backends: 1, workers: 1, service: 10 * ms},
		phases: []phase{
			{label: "outage", length: time.Second},
			{label: "pulse", length: time.Second},
			{label: "after the pulse", length: time.Second},
		},
	}
	r := &record{calls: every(3*time.Second, func(at time.Duration) bool { return at < time.Second })}
	for _, c := range r.calls {
		r.requests = append(r.requests, c.at)
		if !c.ok {
			r.requests = append(r.requests, c.at, c.at) // two extra attempts
		}
	}
	got := measure(d, "x", r)
	if got.phases["outage"] != 0 || got.phases["pulse"] != 1 || got.phases["after the pulse"] != 1 {
		t.Errorf("success by phase %v; want 0, 1, 1", got.phases)
	}
	if got.outage != 3 || got.perCall != 5./3 || got.success != 2./3 {
		t.Errorf("%v requests per call in the outage, %v in all, success %v; want 3, 5/3, 2/3", got.outage, got.perCall, got.success)
	}
	if got.peak != 30 { // 3000 per second, at a capacity of 100
		t.Errorf("peak %v capacities; want 30", got.peak)
	}
	if !got.returned || got.recovery != 0 {
		t.Errorf("recovery %v, %v; want at once", got.recovery, got.returned)
	}
}
