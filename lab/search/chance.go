// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// chance is the source of random numbers for a scenario.
type chance struct{ *rand.Rand }

// newChance returns the chance of the scenario with a number, under a seed. It is independent of all others.
func newChance(seed uint64, index int) chance {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(index))
	return chance{rand.New(rand.NewChaCha8(key))}
}

// hit returns true in this part of the cases, 0 to 1.
func (c chance) hit(part float64) bool { return c.Float64() < part }

// even draws a number evenly.
func (c chance) even(from, to float64) float64 { return from + c.Float64()*(to-from) }

// log draws evenly on a logarithmic scale, for sizes that may differ by orders of magnitude. From must be more than 0.
func (c chance) log(from, to float64) float64 {
	return from * math.Exp(c.Float64()*math.Log(max(to, from)/from))
}

// count draws a whole number, like log.
func (c chance) count(from, to int) int {
	return min(int(c.log(float64(from), float64(to)+1)), to)
}

// span draws a time, like log.
func (c chance) span(from, to time.Duration) time.Duration {
	return neat(time.Duration(c.log(float64(from), float64(to))))
}

// one draws an index, with these weights.
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

// neat returns a time with two significant digits, at least a millisecond.
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

// tidy returns a number with two decimals.
func tidy(f float64) float64 { return math.Round(f*100) / 100 }
