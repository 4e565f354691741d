// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// chance draws the numbers of one scenario. Each draw has a name and is independent of all others, so a new draw leaves the others
// as they are, and a shrunk scenario is one with some draws replaced. At 0, each kind of draw gives its simplest value.
type chance struct {
	set   set
	seed  uint64
	index int
	fixed map[string]float64 // draws that are replaced, by name
	names []string           // of all draws so far
	times map[string]int     // how often each name was drawn; later draws get a number
}

func newChance(of set, seed uint64, index int, fixed map[string]float64) *chance {
	return &chance{set: of, seed: seed, index: index, fixed: fixed, times: map[string]int{}}
}

// part draws a number from 0 to less than 1.
func (c *chance) part(name string) float64 {
	if c.times[name]++; c.times[name] > 1 {
		name = fmt.Sprint(name, " ", c.times[name])
	}
	c.names = append(c.names, name)
	if f, ok := c.fixed[name]; ok {
		return f
	}
	return c.source(name).Float64()
}

// source returns the random numbers of a name. They depend on the scenario, and on no other draw.
func (c *chance) source(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, c.index, " ", name, c.set) // a hash has no errors
	return rand.New(rand.NewPCG(c.seed, h.Sum64()))
}

// hit returns true in this part of the cases, 0 to 1.
func (c *chance) hit(name string, part float64) bool { return c.part(name) >= 1-part }

// even draws a number evenly.
func (c *chance) even(name string, from, to float64) float64 {
	return tidy(from + c.part(name)*(to-from))
}

// log draws evenly on a logarithmic scale, for sizes that may differ by orders of magnitude. From must be more than 0.
func (c *chance) log(name string, from, to float64) float64 {
	return from * math.Exp(c.part(name)*math.Log(max(to, from)/from))
}

// count draws a whole number, like log.
func (c *chance) count(name string, from, to int) int {
	return min(int(c.log(name, float64(from), float64(to)+1)), to)
}

// span draws a time, like log.
func (c *chance) span(name string, from, to time.Duration) time.Duration {
	return neat(c.log(name, float64(from), float64(to)))
}

// one draws an index, with these weights. The first should be the simplest.
func (c *chance) one(name string, weights ...float64) int {
	var sum float64
	for _, w := range weights {
		sum += w
	}
	at := c.part(name) * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// neat returns a time in nanoseconds with two significant digits, at least a millisecond.
func neat[T float64 | time.Duration](ns T) time.Duration {
	d, unit := max(time.Duration(ns), time.Millisecond), time.Millisecond
	for d >= 100*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// tidy returns a number with two decimals.
func tidy(f float64) float64 { return math.Round(f*100) / 100 }
