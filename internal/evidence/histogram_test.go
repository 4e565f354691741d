// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBinWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		i := index(d)
		high := upper(i)
		if high < d || float64(high-d) > float64(d)*Precision {
			t.Fatalf("%d lies in bin %d, which ends at %d", d, i, high)
		}
		if high < 1<<62 && index(high+1) != i+1 {
			t.Fatalf("%d lies in bin %d; want the one after %d", high+1, index(high+1), i)
		}
	})
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		var h Histogram
		if h.Quantile(0.5) != 0 || h.Mean() != 0 || h.Count() != 0 {
			t.Errorf("%+v: want zeros", h)
		}
	})
	t.Run("short durations are exact", func(t *testing.T) {
		t.Parallel()
		var h Histogram
		for i := 100; i >= 1; i-- {
			h.Add(time.Duration(i))
		}
		for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
			if got := h.Quantile(q); got != want {
				t.Errorf("quantile %v: %v; want %v", q, got, want)
			}
		}
		if got := h.Mean(); got != 50 {
			t.Errorf("mean %v; want 50.5, in whole nanoseconds", got)
		}
		h.Add(time.Hour)
		if got := h.Quantile(1); got != time.Hour {
			t.Errorf("longest %v; want an hour, exactly", got)
		}
	})
	t.Run("quantiles", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			list := rapid.SliceOfN(rapid.Int64Range(-1, int64(time.Hour)), 1, 50).Draw(t, "durations")
			var one, other, all Histogram
			for i, n := range list {
				list[i] = max(n, 0)
				[]*Histogram{&one, &other}[i%2].Add(time.Duration(n))
			}
			all.Add(time.Minute)
			all.Reset()
			all.AddAll(&one)
			all.AddAll(&other)
			slices.Sort(list)
			rank := rapid.IntRange(1, len(list)).Draw(t, "rank")
			want := time.Duration(list[rank-1])
			got := all.Quantile((float64(rank) - 0.5) / float64(len(list)))
			if got < want || float64(got-want) > float64(want)*Precision || all.Count() != uint64(len(list)) {
				t.Fatalf("rank %d of %v: %v of %d", rank, list, got, all.Count())
			}
		})
	})
}
