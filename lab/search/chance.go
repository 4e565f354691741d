// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// chance is what a scenario is drawn from.
type chance struct{ *rand.Rand }

// newChance is the chance of the scenario with a number, under a seed. It is independent of all others.
func newChance(seed uint64, index int) chance {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(index))
	return chance{rand.New(rand.NewChaCha8(key))}
}

// hit is true in this part of the cases, 0 to 1.
func (c chance) hit(part float64) bool { return c.Float64() < part }

// even is drawn evenly.
func (c chance) even(from, to float64) float64 { return from + c.Float64()*(to-from) }

// log is drawn evenly on a scale of logarithms, as sizes are that may differ by orders of magnitude. From must be more than 0.
func (c chance) log(from, to float64) float64 {
	return from * math.Exp(c.Float64()*math.Log(max(to, from)/from))
}

// count is a whole number, drawn as log does.
func (c chance) count(from, to int) int {
	return min(int(c.log(float64(from), float64(to)+1)), to)
}

// span is a time, drawn as log does.
func (c chance) span(from, to time.Duration) time.Duration {
	return neat(time.Duration(c.log(float64(from), float64(to))))
}

// one is an index, with these weights.
func (c chance) one(weights ...float64) int {
	var sum float64
	for _, w := range weights {
		sum += w
	}
	at := c.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// neat is a time with two digits that count, at least a millisecond.
func neat(d time.Duration) time.Duration {
	if d <= time.Millisecond {
		return time.Millisecond
	}
	unit := time.Millisecond
	for d >= 100*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// tidy is a number with two digits behind the point.
func tidy(f float64) float64 { return math.Round(f*100) / 100 }
