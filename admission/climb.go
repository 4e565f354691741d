// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// The shape of a growing queue, in parts of a call's time.
const (
	stepTime  = 1. / 12 // of one step, at least
	stepLeast = 2       // answers per step, at least
	climbLong = 5       // steps, each slower than the one before
	climbHigh = 0.5     // the height that answers must reach
	climbRise = 0.3     // their minimum rise
	climbLeap = 0.5     // of the rise, for one step: a service that becomes slower leaps
)

// climb follows the fastest responses of successive steps. A growing queue makes responses slower and slower; a slow service makes
// them slow all together. The zero value is empty.
type climb struct {
	steps   int
	low     time.Duration // the fastest response of the first step
	high    time.Duration // the fastest response of the last step
	leap    time.Duration // the largest rise from one step to the next
	began   time.Duration // when the current step began
	answers int           // in the current step
	fastest time.Duration // of the current step
}

// recordAnswer records a response to a call with this time left. It reports whether a queue is growing that takes half of that time.
func (c *climb) recordAnswer(now, took, left time.Duration) bool {
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
