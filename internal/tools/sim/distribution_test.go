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
	bimodal := Distribution{
		Shape: ShapeBimodal, Part: 0.2, Usual: &Distribution{A: 10 * time.Millisecond},
		Slow: &Distribution{Shape: ShapeExponential, A: 344_269 * time.Microsecond},
	}
	for _, row := range []struct {
		d        Distribution
		quantile float64
		want     time.Duration // of the quantile
	}{
		{Distribution{Shape: ShapeFixed, A: 20 * time.Millisecond}, 0.5, 20 * time.Millisecond},
		{Distribution{Shape: ShapeUniform, A: 10 * time.Millisecond, B: 30 * time.Millisecond}, 0.9, 28 * time.Millisecond},
		{Distribution{Shape: ShapeExponential, A: 20 * time.Millisecond}, 0.5, 13_863 * time.Microsecond},
		{Distribution{Shape: ShapeNormal, A: 20 * time.Millisecond, B: 2 * time.Millisecond}, 0.8413, 22 * time.Millisecond},
		{Distribution{Shape: ShapeLogNormal, A: 20 * time.Millisecond, B: 100 * time.Millisecond}, 0.99, 100 * time.Millisecond},
		{bimodal, 0.5, 10 * time.Millisecond},
		{bimodal, 0.9, 238_629 * time.Microsecond}, // half of the slow ones are longer
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
		if d := (&Distribution{Shape: ShapeNormal, A: 1, B: time.Hour}).draw(random); d < 0 {
			t.Fatalf("normal: %v", d)
		}
		if d := (&Distribution{Shape: ShapeLogNormal, A: 1, B: time.Hour}).draw(random); d < 0 || float64(d) > longest {
			t.Fatalf("lognormal: %v", d)
		}
	}
}
