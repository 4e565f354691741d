// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
)

// Quartiles are the values that a quarter, half, and three quarters of the values do not exceed.
type Quartiles struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// QuartilesOf are those of the values, in between which it interpolates; NaN of none.
func QuartilesOf(values []float64) Quartiles {
	sorted := slices.Sorted(slices.Values(values))
	return Quartiles{at(sorted, 0.25), at(sorted, 0.5), at(sorted, 0.75)}
}

// at is the value that stands at a part of the way through sorted ones.
func at(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	whole, rest := math.Modf(part * float64(len(sorted)-1))
	i := int(whole)
	if rest == 0 {
		return sorted[i]
	}
	return sorted[i] + rest*(sorted[i+1]-sorted[i])
}
