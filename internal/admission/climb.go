// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// How answers climb while a queue grows, in parts of a call's time.
const (
	stepTime  = 1. / 12 // of one step, at least
	stepLeast = 2       // answers in it
	climbLong = 5       // steps, each slower than the one before
	climbHigh = 0.5     // where it has come to
	climbRise = 0.3     // from where it began
	climbLeap = 0.5     // of the rise, for one step: a service that is slower from now on leaps
)

// climb follows the fastest answers of successive steps. A queue that grows makes answers slower and slower, and a service
// that is slow makes them slow all at once. The zero value has seen nothing.
type climb struct {
	steps   int
	low     time.Duration // the fastest answer of the first step
	high    time.Duration // and of the last
	leap    time.Duration // the longest way from one step to the next
	began   time.Duration // the current step
	answers int           // in it
	fastest time.Duration // of them
}

// add takes in an answer to a call that had so much time. It reports whether a queue grows that is half as long as that.
func (c *climb) add(now, took, left time.Duration) bool {
	if c.answers == 0 {
		c.began, c.fastest = now, took
	}
	c.answers++
	c.fastest = min(c.fastest, took)
	if c.answers < stepLeast || part(now-c.began, left) < stepTime {
		return false
	}
	way := c.fastest - c.high
	c.high, c.answers = c.fastest, 0
	if c.steps == 0 || way <= 0 {
		c.steps, c.low, c.leap = 1, c.fastest, 0
		return false
	}
	c.steps, c.leap = c.steps+1, max(c.leap, way)
	rise := c.high - c.low
	return c.steps >= climbLong && part(c.high, left) > climbHigh && part(rise, left) > climbRise && part(c.leap, rise) < climbLeap
}

func part(d, of time.Duration) float64 { return float64(d) / float64(of) }
