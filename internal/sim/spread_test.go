// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestABinHoldsWhatIsAtMostOneIn64Longer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		i := binOf(d)
		high := highest(i)
		if high < d || float64(high-d) > float64(d)/64 {
			t.Fatalf("%d lies in bin %d, which ends at %d", d, i, high)
		}
		if high < 1<<62 && binOf(high+1) != i+1 {
			t.Fatalf("%d lies in bin %d; want the one after %d", high+1, binOf(high+1), i)
		}
	})
}

func TestQuantilesAreNearestRanks(t *testing.T) {
	t.Parallel()
	var s spread
	if got := s.quantile(0.5); got != 0 {
		t.Errorf("median of nothing: %v; want 0", got)
	}
	for i := 100; i >= 1; i-- {
		s.add(time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := s.quantile(q); got != want {
			t.Errorf("quantile %v: %v; want %v", q, got, want)
		}
	}
	if got := s.mean(); got != 50 {
		t.Errorf("mean %v; want 50.5, in whole nanoseconds", got)
	}
	s.add(time.Hour)
	if got := s.quantile(1); got != time.Hour {
		t.Errorf("longest %v; want an hour, exactly", got)
	}
}
