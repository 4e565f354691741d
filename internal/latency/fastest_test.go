// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

func TestFastest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		at, took []time.Duration
		want     time.Duration // as the next answer sees it
		next     time.Duration
	}{
		"none":                  {nil, nil, 0, 0},
		"one":                   {[]time.Duration{0}, []time.Duration{7 * ms}, 7 * ms, 0},
		"the shortest":          {[]time.Duration{0, 1, 2}, []time.Duration{7 * ms, 5 * ms, 6 * ms}, 5 * ms, 3},
		"at once":               {[]time.Duration{0}, []time.Duration{0}, 1, 0},
		"in the next period":    {[]time.Duration{0, fastestAge}, []time.Duration{5 * ms, 9 * ms}, 5 * ms, 2*fastestAge - 1},
		"two periods later":     {[]time.Duration{0, fastestAge}, []time.Duration{5 * ms, 9 * ms}, 9 * ms, 2 * fastestAge},
		"after a long silence":  {[]time.Duration{0}, []time.Duration{5 * ms}, 0, 2 * fastestAge},
		"before the clock's 0":  {[]time.Duration{-time.Hour, -time.Hour + 1}, []time.Duration{5 * ms, 4 * ms}, 4 * ms, -time.Hour + 2},
		"a period that has 0":   {[]time.Duration{-fastestAge, -1}, []time.Duration{5 * ms, 6 * ms}, 5 * ms, 0},
		"faster in the new one": {[]time.Duration{0, fastestAge}, []time.Duration{5 * ms, 4 * ms}, 4 * ms, 2 * fastestAge},
	} {
		var f Fastest
		for i, at := range row.at {
			f.Record(row.took[i], at)
		}
		if got := f.Record(time.Hour, row.next); got != row.want {
			t.Errorf("%s: %v; want %v", name, got, row.want)
		}
	}
}
