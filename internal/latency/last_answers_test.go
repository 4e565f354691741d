// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

func TestLastAnswers(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	type answer struct{ took, at time.Duration }
	slow := func(at time.Duration) answer { return answer{timeout + 1, at} }
	fast := func(at time.Duration) answer { return answer{timeout, at} }
	for name, row := range map[string]struct {
		answers []answer
		at      time.Duration
		want    bool
	}{
		"none":                         {nil, time.Second, false},
		"a fast one":                   {[]answer{fast(1)}, 1, false},
		"a slow one":                   {[]answer{slow(1)}, 1, true},
		"a slow one, 10 s ago":         {[]answer{slow(1)}, 10*time.Second + 1, true},
		"a slow one, longer ago":       {[]answer{slow(1)}, 10*time.Second + 2, false},
		"a slow one, then four":        {[]answer{slow(1), fast(2), fast(3), fast(4), fast(5)}, 6, true},
		"a slow one, then five":        {[]answer{slow(1), fast(2), fast(3), fast(4), fast(5), fast(6)}, 7, false},
		"a slow one among fast ones":   {[]answer{slow(1), fast(2), fast(3), slow(4), fast(5), fast(6), fast(7), fast(8)}, 9, true},
		"then five":                    {[]answer{slow(1), fast(2), fast(3), slow(4), fast(5), fast(6), fast(7), fast(8), fast(9)}, 10, false},
		"a fast one, then a slow one":  {[]answer{fast(1), slow(2)}, 3, true},
		"slow ones all the time":       {[]answer{slow(1), slow(time.Second), slow(11 * time.Second)}, 20 * time.Second, true},
		"a slow one, and long silence": {[]answer{slow(1), slow(time.Minute)}, time.Minute + 1, true},
		"slow ones at once":            {[]answer{slow(time.Second), slow(1100*time.Millisecond - 1)}, 11*time.Second + 1, false},
		"slow ones, 100 ms apart":      {[]answer{slow(time.Second), slow(1100 * time.Millisecond)}, 11100 * time.Millisecond, true},
		"before the clock's zero":      {[]answer{slow(-time.Hour)}, -time.Hour + time.Second, true},
	} {
		var l LastAnswers
		for _, a := range row.answers {
			l.Record(a.took, timeout, a.at)
		}
		if got := l.Slow(row.at); got != row.want {
			t.Errorf("%s: slow %v at %v; want %v", name, got, row.at, row.want)
		}
	}
}

func TestLastAnswers_WritesChanges(t *testing.T) {
	t.Parallel()
	var l LastAnswers
	l.Record(2, 1, time.Second)
	l.Record(2, 1, time.Second+answerRefresh-1)
	if got := l.slowAt.Load(); got != int64(time.Second) {
		t.Errorf("slow answers at once: written at %v; want the first alone", time.Duration(got))
	}
	for range answersThatCount + 1 {
		l.Record(1, 1, 2*time.Second)
	}
	if slow, fast := l.slowAt.Load(), l.fast.Load(); slow != 0 || fast != 0 {
		t.Errorf("fast answers: slow at %v, and %d counted; want never, and none", time.Duration(slow), fast)
	}
}
