// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Distributions have their mean and their other number.
func TestDistributionMoments(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for _, row := range []struct {
		d        Distribution
		quantile float64
		want     time.Duration // of the quantile
	}{
		{Distribution{ShapeFixed, 20 * time.Millisecond, 0}, 0.5, 20 * time.Millisecond},
		{Distribution{ShapeUniform, 10 * time.Millisecond, 30 * time.Millisecond}, 0.9, 28 * time.Millisecond},
		{Distribution{ShapeExponential, 20 * time.Millisecond, 0}, 0.5, 13_863 * time.Microsecond},
		{Distribution{ShapeNormal, 20 * time.Millisecond, 2 * time.Millisecond}, 0.8413, 22 * time.Millisecond},
		{Distribution{ShapeLogNormal, 20 * time.Millisecond, 100 * time.Millisecond}, 0.99, 100 * time.Millisecond},
	} {
		random := random(1, 2)
		list := make([]time.Duration, n)
		var sum float64
		for i := range list {
			list[i] = row.d.draw(random)
			sum += float64(list[i])
		}
		slices.Sort(list)
		if got, want := sum/n, float64(row.d.Mean()); math.Abs(got-want) > 0.02*want {
			t.Errorf("%v: mean %v; want %v", row.d, time.Duration(got), row.d.Mean())
		}
		if got := list[int(row.quantile*n)-1]; math.Abs(float64(got-row.want)) > 0.03*float64(row.want) {
			t.Errorf("%v: quantile %v is %v; want %v", row.d, row.quantile, got, row.want)
		}
	}
}

// No duration is negative or endless.
func TestDistributionBounds(t *testing.T) {
	t.Parallel()
	random := random(1, 2)
	for range 10_000 {
		if d := (&Distribution{ShapeNormal, 1, time.Hour}).draw(random); d < 0 {
			t.Fatalf("normal: %v", d)
		}
		if d := (&Distribution{ShapeLogNormal, 1, time.Hour}).draw(random); d < 0 || float64(d) > longest {
			t.Fatalf("lognormal: %v", d)
		}
	}
}
