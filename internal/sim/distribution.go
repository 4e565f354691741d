// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Distribution is the distribution of a duration.
type Distribution struct {
	Shape       Shape
	A, B        time.Duration // their meaning depends on the shape
	Usual, Slow *Distribution // of a ShapeBimodal; otherwise nil
	Part        float64       // probability of Slow in a ShapeBimodal, 0 to 1
}

// Shape is the form of a distribution.
type Shape uint8

// The shapes.
const (
	ShapeFixed       Shape = iota // A
	ShapeExponential              // with mean A
	ShapeNormal                   // with mean A and deviation B, never negative
	ShapeLogNormal                // with median A; 99 % do not exceed B
	ShapeBimodal                  // Slow with probability Part, else Usual
)

// Sample returns one duration.
func (d *Distribution) Sample(chance *rand.Rand) time.Duration {
	a, b := float64(d.A), float64(d.B)
	switch d.Shape {
	case ShapeExponential:
		a *= chance.ExpFloat64()
	case ShapeNormal:
		a += chance.NormFloat64() * b
	case ShapeLogNormal:
		a *= math.Exp(chance.NormFloat64() * d.logDeviation())
	case ShapeBimodal:
		if chance.Float64() < d.Part {
			return d.Slow.Sample(chance)
		}
		return d.Usual.Sample(chance)
	case ShapeFixed:
		return d.A
	}
	return time.Duration(max(min(a, longest), 0))
}

// longest is longer than any scenario, in nanoseconds, and can be added to a time.
const longest = float64(24 * 365 * time.Hour)

// quantile99 is the 99 % quantile of the standard normal distribution.
const quantile99 = 2.3263478740408408

// logDeviation returns the deviation of the logarithm.
func (d *Distribution) logDeviation() float64 {
	return math.Log(float64(d.B)/float64(d.A)) / quantile99
}

// Mean returns the average; for a [ShapeNormal] that of the uncut distribution.
func (d *Distribution) Mean() time.Duration {
	switch d.Shape {
	case ShapeLogNormal:
		s := d.logDeviation()
		return time.Duration(min(float64(d.A)*math.Exp(s*s/2), longest))
	case ShapeBimodal:
		return time.Duration(d.Part*float64(d.Slow.Mean()) + (1-d.Part)*float64(d.Usual.Mean()))
	default:
		return d.A
	}
}
