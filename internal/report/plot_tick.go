// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"

	"gonum.org/v1/plot"
)

const inexact = 1e-9 // of a step: 0.35 is not quite seven times 0.05

// ticker marks an axis at round numbers: 1, 2 or 5 times a power of ten apart, most of them at most.
type ticker struct{ most float64 }

// Ticks implements [plot.Ticker].
func (t ticker) Ticks(from, to float64) []plot.Tick {
	step := roundUp((to - from) / t.most)
	first, last := math.Ceil(from/step-inexact), math.Floor(to/step+inexact)
	n := int(last-first) + 1
	marks := make([]plot.Tick, 0, n)
	for i := range n {
		value := (first + float64(i)) * step
		marks = append(marks, plot.Tick{Value: value, Label: number(value)})
	}
	return marks
}

// roundUp is the least of 1, 2 and 5 times the powers of ten that is not below step.
func roundUp(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= step*(1-inexact) {
			return times * power
		}
	}
	return 10 * power
}
