// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"sync"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	const never = time.Duration(math.MaxInt64)
	for name, row := range map[string]struct {
		timeout, left, took time.Duration
		want                Speed
	}{
		"within the timeout":                        {200 * ms, time.Second, 200 * ms, Fast},
		"longer, and a quarter of the call's time":  {200 * ms, time.Second, 250 * ms, Slow},
		"longer than both":                          {200 * ms, time.Second, 250*ms + 1, VerySlow},
		"longer than a timeout of half the time":    {500 * ms, time.Second, 501 * ms, VerySlow},
		"longer than a quarter, within the timeout": {500 * ms, time.Second, 400 * ms, Fast},
		"without a timeout, a quarter":              {0, time.Second, 250 * ms, Fast},
		"without a timeout, more":                   {0, time.Second, 251 * ms, VerySlow},
		"without a deadline, within the timeout":    {200 * ms, never, 200 * ms, Fast},
		"without a deadline":                        {200 * ms, never, time.Hour, Slow},
		"without timeout and deadline":              {0, never, time.Hour, Fast},
		"after the deadline":                        {0, -time.Second, 0, VerySlow},
	} {
		if got := LimitsOf(row.timeout, row.left).SpeedOf(row.took); got != row.want {
			t.Errorf("%s: %v; want %v", name, got, row.want)
		}
	}
}

// What the last ten answers show, the newest last: f is fast, s slow, v very slow.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for answers, want := range map[string]struct {
		Evidence

		few, often, always bool
	}{
		"":                        {Evidence{0, 0, 0}, true, false, false},
		"s":                       {Evidence{1, 1, 0}, true, true, false},
		"ffff":                    {Evidence{4, 0, 0}, true, false, false},
		"fffs":                    {Evidence{4, 1, 0}, true, true, false},
		"ffffs":                   {Evidence{5, 1, 0}, false, false, false},
		"ffffsvfff":               {Evidence{9, 2, 1}, false, true, false},
		"ffffsvffff":              {Evidence{10, 2, 1}, false, false, false},
		"ffffsvfffv":              {Evidence{10, 3, 2}, false, true, false},
		"ssssffffffff":            {Evidence{10, 2, 0}, false, false, false},
		"sfffffffffff":            {Evidence{10, 0, 0}, false, false, false},
		"vvvvvvvvv":               {Evidence{9, 9, 9}, false, true, false},
		"vvvvvvvvvv":              {Evidence{10, 10, 10}, false, true, true},
		"vvvvvvvvvs":              {Evidence{10, 10, 9}, false, true, false},
		"ffffffffffvvvvvvvvvv":    {Evidence{10, 10, 10}, false, true, true},
		"vvvvvvvvvvf":             {Evidence{10, 9, 9}, false, true, false},
		"vvvvvvvvvvffffffff":      {Evidence{10, 2, 2}, false, false, false},
		"vvvvvvvvvvffffffffffffv": {Evidence{10, 1, 1}, false, false, false},
	} {
		var a Answers
		for _, c := range answers {
			a.Record(map[rune]Speed{'f': Fast, 's': Slow, 'v': VerySlow}[c])
		}
		e := a.Evidence()
		if e != want.Evidence || e.Few() != want.few || e.OftenSlow() != want.often || e.AlwaysSlow() != want.always {
			t.Errorf("%q: %+v, few %v, often slow %v, always slow %v; want %+v", answers, e, e.Few(), e.OftenSlow(), e.AlwaysSlow(), want)
		}
	}
}

// No answer is lost, and while all were fast, another fast one writes nothing.
func TestAnswers_Concurrent(t *testing.T) {
	t.Parallel()
	var (
		a  Answers
		wg sync.WaitGroup
	)
	for range 10 {
		wg.Go(func() { a.Record(VerySlow) })
	}
	wg.Wait()
	if e := a.Evidence(); e != (Evidence{10, 10, 10}) {
		t.Errorf("%+v; want ten very slow answers", e)
	}
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				a.Record(Fast)
			}
		})
	}
	wg.Wait()
	if e := a.Evidence(); e != (Evidence{Known: 10}) {
		t.Errorf("%+v; want ten fast answers", e)
	}
}

func BenchmarkAnswers_Fast(b *testing.B) {
	var a Answers
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Record(Fast)
		}
	})
}
