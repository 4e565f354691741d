// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRate(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, row := range map[string]struct {
		answers []time.Duration
		at      time.Duration
		want    float64
	}{
		"none":                          {nil, second, 0},
		"one, just now":                 {[]time.Duration{0}, 0, 2}, // the shortest time is half a second
		"one each 100 ms for a second":  {every(0, second, 100*time.Millisecond), second, 10},
		"for as long as it looks back":  {every(0, 3*second, 100*time.Millisecond), 3*second - 1, 10},
		"for longer":                    {every(0, 20*second, 100*time.Millisecond), 20*second - 1, 10},
		"silence after that":            {every(0, 20*second, 100*time.Millisecond), 21*second + 499*time.Millisecond, 5},
		"long silence":                  {every(0, 20*second, 100*time.Millisecond), 23 * second, 0},
		"after a pause it begins anew":  {append(every(0, 5*second, 10*time.Millisecond), every(60*second, 61*second, 100*time.Millisecond)...), 61 * second, 10},
		"after a pause of the window":   {[]time.Duration{0, part + window}, part + window, 2},
		"a clock that stands before 0":  {every(-second, 0, 100*time.Millisecond), 0, 10},
		"a clock that lags for a while": {[]time.Duration{second, second - 1, second + 1}, second, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r rate
			for _, at := range row.answers {
				r.add(at)
			}
			if got := r.perSecond(row.at); got < row.want*0.999 || got > row.want*1.001 {
				t.Errorf("%v a second; want %v", got, row.want)
			}
		})
	}
}

// every is a time each step in [from, until).
func every(from, until, step time.Duration) []time.Duration {
	var list []time.Duration
	for at := from; at < until; at += step {
		list = append(list, at)
	}
	return list
}

// What is counted is what came within the window, or within the window less one part.
func TestRateCountsTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			r       rate
			answers []time.Duration
			now     time.Duration
		)
		for range rapid.IntRange(1, 200).Draw(t, "answers") {
			now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "after"))
			r.add(now)
			answers = append(answers, now)
			counted := 0
			for _, at := range answers {
				if at >= r.since {
					counted++
				}
			}
			if counted != r.sum {
				t.Fatalf("%d answers counted at %v; want the %d since %v", r.sum, now, counted, r.since)
			}
			if age := now - r.since; age > window || age < 0 {
				t.Fatalf("counts since %v at %v; want at most %v", r.since, now, window)
			}
		}
	})
}
