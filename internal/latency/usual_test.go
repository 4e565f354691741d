// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// within reports whether a usual time is the wanted one, within the width of a histogram's bin.
func within(got, want time.Duration) bool { return got >= want && got <= want+want/64 }

func TestUsual(t *testing.T) {
	t.Parallel()
	every := func(n int, from, step, took time.Duration) func(*Usual) {
		return func(u *Usual) {
			for i := range n {
				u.Record(took, from+time.Duration(i)*step)
			}
		}
	}
	const minute = time.Minute
	for name, row := range map[string]struct {
		record []func(*Usual)
		want   time.Duration
	}{
		"seven responses are too few":     {[]func(*Usual){every(7, 0, 1, 50*ms)}, 0},
		"eight are enough":                {[]func(*Usual){every(8, 0, 1, 50*ms)}, 50 * ms},
		"in one instant":                  {[]func(*Usual){every(8, 7, 0, 50*ms)}, 50 * ms},
		"half take at most as long":       {[]func(*Usual){every(4, 0, 1, 50*ms), every(4, 10, 1, 90*ms)}, 50 * ms},
		"one from a cache changes little": {[]func(*Usual){every(1, 0, 1, 1*ms), every(9, 10, 1, 90*ms)}, 90 * ms},
		"a slow start is forgotten":       {[]func(*Usual){every(1, 0, 1, time.Second), every(19, 10, 1, 90*ms)}, 90 * ms},
		"an overload of two minutes":      {[]func(*Usual){every(300, 0, time.Second, 50*ms), every(120, 5*minute, time.Second, time.Second)}, 50 * ms},
		"a service that got slower":       {[]func(*Usual){every(300, 0, time.Second, 50*ms), every(600, 5*minute, time.Second, time.Second)}, time.Second},
		"after a long silence":            {[]func(*Usual){every(300, 0, time.Second, 50*ms), every(3, 60*minute, 1, 90*ms)}, 90 * ms},
		"two responses after a silence":   {[]func(*Usual){every(300, 0, time.Second, 50*ms), every(2, 60*minute, 1, 90*ms)}, 50 * ms},
		"one call in five minutes":        {[]func(*Usual){every(12, 0, 5*minute, 50*ms)}, 0},
		"before the zero of the clock":    {[]func(*Usual){every(300, -60*minute, time.Second, 50*ms)}, 50 * ms},
		"an instant":                      {[]func(*Usual){every(8, 0, 1, 0)}, 1},
	} {
		var u Usual
		for _, record := range row.record {
			record(&u)
		}
		if got := u.Time(); !within(got, row.want) {
			t.Errorf("%s: %v; want %v", name, got, row.want)
		}
	}
}

// With an ordinary spread, few responses are slower than twice the usual time, however few have been seen.
func TestUsual_Spread(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct{ sigma, most float64 }{{0.2, 0.01}, {0.4, 0.06}, {0.7, 0.2}} {
		var u Usual
		slow, n := 0, 0
		for i := range 2000 {
			took := time.Duration(100e6 * math.Exp(row.sigma*random.NormFloat64()))
			if usual := u.Time(); usual > 0 {
				n++
				if took > 2*usual {
					slow++
				}
			}
			u.Record(took, time.Duration(i)*100*ms)
		}
		if part := float64(slow) / float64(n); part > row.most {
			t.Errorf("σ %v: %.3f of the responses are slow; want at most %v", row.sigma, part, row.most)
		}
	}
}

// Once it knows enough, one response in a tenth of a second is recorded.
func TestUsual_Ignores(t *testing.T) {
	t.Parallel()
	var u Usual
	for range usualSingle {
		if u.ignores(0) {
			t.Fatal("a response is ignored while few are known")
		}
		u.Record(ms, 0)
	}
	u.Record(ms, 0)
	if !u.ignores(usualEvery-1) || u.ignores(usualEvery) {
		t.Error("want responses ignored for a tenth of a second")
	}
}
