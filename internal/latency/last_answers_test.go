// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

func TestLastAnswers(t *testing.T) {
	t.Parallel()
	type answer struct {
		slow bool
		at   time.Duration
	}
	slow := func(at time.Duration) answer { return answer{true, at} }
	fast := func(at time.Duration) answer { return answer{false, at} }
	for name, row := range map[string]struct {
		answers []answer
		at      time.Duration
		want    int
	}{
		"none":                         {nil, time.Second, 0},
		"a fast one":                   {[]answer{fast(1)}, 1, 0},
		"a slow one":                   {[]answer{slow(1)}, 1, 1},
		"a slow one, 10 s ago":         {[]answer{slow(1)}, 10*time.Second + 1, 1},
		"a slow one, longer ago":       {[]answer{slow(1)}, 10*time.Second + 2, 0},
		"a slow one, then four":        {[]answer{slow(1), fast(2), fast(3), fast(4), fast(5)}, 6, 1},
		"a slow one, then five":        {[]answer{slow(1), fast(2), fast(3), fast(4), fast(5), fast(6)}, 7, 0},
		"a slow one among fast ones":   {[]answer{slow(1), fast(2), fast(3), slow(4), fast(5), fast(6), fast(7), fast(8)}, 9, 1},
		"then five":                    {[]answer{slow(1), fast(2), fast(3), slow(4), fast(5), fast(6), fast(7), fast(8), fast(9)}, 10, 0},
		"a fast one, then a slow one":  {[]answer{fast(1), slow(2)}, 3, 1},
		"slow ones all the time":       {[]answer{slow(1), slow(time.Second), slow(11 * time.Second)}, 20 * time.Second, 3},
		"a slow one, and long silence": {[]answer{slow(1), slow(time.Minute)}, time.Minute + 1, 2},
		"slow ones at once":            {[]answer{slow(time.Second), slow(1100*time.Millisecond - 1)}, 11*time.Second + 1, 0},
		"slow ones, 100 ms apart":      {[]answer{slow(time.Second), slow(1100 * time.Millisecond)}, 11100 * time.Millisecond, 2},
		"before the clock's zero":      {[]answer{slow(-time.Hour)}, -time.Hour + time.Second, 1},
	} {
		var l LastAnswers
		for _, a := range row.answers {
			l.RecordAnswer(a.slow, time.Second, a.at)
		}
		if got := l.Slow(0, row.at); got != row.want {
			t.Errorf("%s: %d are slow at %v; want %d", name, got, row.at, row.want)
		}
	}
}

// A caller may ask only for slow answers that took longer.
func TestLastAnswers_Least(t *testing.T) {
	t.Parallel()
	var l LastAnswers
	for i, row := range []struct {
		slow bool
		took time.Duration
		want [3]int // over 0, 10 ms, 20 ms
	}{
		{true, 10 * ms, [3]int{1, 0, 0}},
		{true, 11 * ms, [3]int{2, 1, 0}},
		{true, 21 * ms, [3]int{3, 2, 1}},
		{false, time.Hour, [3]int{3, 2, 1}},
		{true, 9 * ms, [3]int{4, 2, 1}},
		{true, 30 * ms, [3]int{4, 3, 2}},
		{false, time.Hour, [3]int{3, 2, 2}},
		{true, 30 * ms, [3]int{3, 2, 2}},
		{false, 0, [3]int{3, 2, 2}},
		{false, 0, [3]int{2, 2, 2}},
	} {
		l.RecordAnswer(row.slow, row.took, time.Second)
		for j, least := range []time.Duration{0, 10 * ms, 20 * ms} {
			if got := l.Slow(least, time.Second); got != row.want[j] {
				t.Errorf("answer %d: %d took longer than %v; want %d", i+1, got, least, row.want[j])
			}
		}
	}
}

func TestLastAnswers_WritesChanges(t *testing.T) {
	t.Parallel()
	var l LastAnswers
	l.RecordAnswer(true, time.Second, time.Second)
	l.RecordAnswer(true, time.Second, time.Second+answerRefresh-1)
	if got := l.slowAt.Load(); got != int64(time.Second) {
		t.Errorf("slow answers at once: written at %v; want the first alone", time.Duration(got))
	}
	for range answersThatCount {
		l.RecordAnswer(false, time.Second, 2*time.Second)
	}
	if slow := l.slow.Load(); slow != 0 {
		t.Errorf("after five fast answers: %b; want none", slow)
	}
}
