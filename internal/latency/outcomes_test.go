// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

// An entry is an outcome that is recorded some times.
type entry struct {
	kind  Kind
	at    time.Duration
	times int
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const took, first = 20 * ms, 100 * time.Second
	fast := func(at time.Duration) entry { return entry{KindFast, first + at, 1} }
	long := func(at time.Duration) entry { return entry{KindLong, first + at, 1} }
	missed := func(at time.Duration) entry { return entry{KindMissed, first + at, 1} }
	for name, row := range map[string]struct {
		list []entry
		at   time.Duration
		want Evidence
	}{
		"none":                          {nil, 0, Evidence{}},
		"a fast one":                    {[]entry{fast(0)}, 0, Evidence{Fast: 1}},
		"three seconds ago":             {[]entry{fast(0)}, 3 * time.Second, Evidence{Fast: 1}},
		"too long ago":                  {[]entry{fast(0)}, 3*time.Second + 1, Evidence{}},
		"fast ones at once":             {[]entry{fast(0), fast(99 * ms)}, 99 * ms, Evidence{Fast: 1}},
		"fast ones, 100 ms apart":       {[]entry{fast(0), fast(100 * ms), fast(200 * ms)}, 200 * ms, Evidence{Fast: 3}},
		"more than count":               {[]entry{{KindLong, first, 9}}, 0, Evidence{0, 5, true, false}},
		"a long one":                    {[]entry{long(0)}, time.Second, Evidence{0, 1, true, false}},
		"a second ago, a long one":      {[]entry{long(0)}, time.Second + 1, Evidence{0, 1, false, false}},
		"a missed deadline, a fast one": {[]entry{fast(0), missed(1)}, 1, Evidence{1, 1, false, false}},
		"one among a hundred":           {[]entry{{KindFast, first, 50}, long(1), {KindFast, first + 2, 50}}, 2, Evidence{2, 1, true, false}},
		"five later":                    {[]entry{long(0), fast(1), fast(200 * ms), fast(300 * ms), fast(400 * ms), fast(500 * ms)}, 500 * ms, Evidence{Fast: 5}},
		"before the clock's zero":       {[]entry{{KindLong, -time.Hour, 1}}, -time.Hour - first, Evidence{0, 1, true, false}},
	} {
		var o Outcomes
		for _, e := range row.list {
			for range e.times {
				o.Record(e.kind, took, e.at)
			}
		}
		row.want.New = o.count.Load() < 2 // however old they are
		if got := o.Evidence(0, first+row.at); got != row.want {
			t.Errorf("%s: %+v; want %+v", name, got, row.want)
		}
		if got := o.Evidence(took, first+row.at); got.Long > 0 || got.LongNow || got.Queue() {
			t.Errorf("%s: %+v to a call that has much more time; want nothing long", name, got)
		}
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	for e, want := range map[Evidence][3]bool{ // few are fast, a queue, all are fast
		{}: {true, false, false}, {Long: 1}: {true, true, false}, {Fast: 1}: {true, false, false}, {Fast: 2, Long: 3}: {}, {Fast: 4}: {}, {Fast: 5}: {false, false, true},
	} {
		if got := [3]bool{e.FewFast(), e.Queue(), e.AllFast()}; got != want {
			t.Errorf("%+v: %v; want %v", e, got, want)
		}
	}
}
