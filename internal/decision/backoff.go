// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Delay returns the wait before a retry with backoff b.
//
// retry is the number of previous retries since the last pushback, 0 for the first. previous is the wait before the previous
// one, or 0. r is a random number in [0, 1). The cap is applied before the jitter, so that clients that have failed for a long
// time don't all wait for exactly the cap. No input causes an overflow.
func Delay(b spec.Backoff, retry int, previous time.Duration, r float64) time.Duration {
	if b.Jitter == "DECORRELATED" {
		return decorrelated(b, previous, r)
	}
	return toDuration(spread(b.Jitter, base(b, retry), r))
}

// base returns the backoff before jitter, in nanoseconds. It is capped as a float64, where Multiplier^i may be infinite but
// never wraps around.
func base(b spec.Backoff, retry int) float64 {
	i := float64(max(retry, 0))
	grown := float64(b.Initial)
	if b.Growth == "LINEAR" {
		grown *= 1 + b.Multiplier*i
	} else {
		grown *= math.Pow(b.Multiplier, i)
	}
	return min(float64(b.Max), grown)
}

// decorrelated applies the cap before it draws. AWS caps the result, so that half of all clients wait for exactly Max, in step
// again.
func decorrelated(b spec.Backoff, previous time.Duration, r float64) time.Duration {
	low := float64(min(b.Initial, b.Max))
	high := min(float64(b.Max), 3*max(float64(previous), low))
	return toDuration(low + r*(high-low))
}

// spread applies the jitter to b. DECORRELATED does not grow from b: see [Delay].
func spread(j string, b, r float64) float64 {
	switch j {
	case "NONE":
		return b
	case "EQUAL":
		return b/2 + r*b/2
	case "PROPORTIONAL":
		return b * (0.8 + 0.4*r)
	default:
		return r * b
	}
}

// toDuration saturates: the float64 nearest to the longest Duration already exceeds it.
func toDuration(ns float64) time.Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns > 0:
		return time.Duration(ns)
	default: // also NaN
		return 0
	}
}
