// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Backoff configures the wait before retries. It has no state: [Backoff.Delay] takes the state of the call as arguments.
type Backoff struct {
	Initial    time.Duration // the first backoff before jitter; more than 0
	Max        time.Duration // the longest backoff before jitter; more than 0
	Multiplier float64       // growth from one retry to the next; more than 0
	Linear     bool          // after i retries Initial · (1 + Multiplier·i); false: Initial · Multiplier^i, constant if Multiplier is 1
	Jitter     Jitter
}

// Jitter is the random spread of a backoff. "" means [JitterFull].
type Jitter string

// The kinds of jitter. b is the backoff after growth and cap, r a random number in [0, 1).
const (
	JitterNone         Jitter = "NONE"         // b: clients stay in step; for tests
	JitterFull         Jitter = "FULL"         // r·b: spreads load best (AWS Architecture Blog, 2015)
	JitterEqual        Jitter = "EQUAL"        // b/2 + r·b/2: at least half
	JitterDecorrelated Jitter = "DECORRELATED" // Initial + r·(min(Max, 3·previous) − Initial)
	JitterProportional Jitter = "PROPORTIONAL" // b·(0.8 + 0.4·r): gRPC's (gRFC A6)
)

// Delay returns the wait before a retry.
//
// retry is the number of previous retries since the last pushback, 0 for the first. previous is the wait before the previous
// one, or 0. r is a random number in [0, 1). The cap is applied before the jitter, so that clients that have failed for a long
// time don't all wait for exactly the cap. No input causes an overflow.
func (b Backoff) Delay(retry int, previous time.Duration, r float64) time.Duration {
	if b.Jitter == JitterDecorrelated {
		return b.decorrelated(previous, r)
	}
	return toDuration(b.Jitter.spread(b.base(retry), r))
}

func (b Backoff) withDefaults() Backoff {
	b.Jitter = cmp.Or(b.Jitter, JitterFull)
	return b
}

// base returns the backoff before jitter, in nanoseconds. It is capped as a float64, where Multiplier^i may be infinite but
// never wraps around.
func (b Backoff) base(retry int) float64 {
	i := float64(max(retry, 0))
	grown := float64(b.Initial)
	if b.Linear {
		grown *= 1 + b.Multiplier*i
	} else {
		grown *= math.Pow(b.Multiplier, i)
	}
	return min(float64(b.Max), grown)
}

// decorrelated applies the cap before it draws. AWS caps the result, so that half of all clients wait for exactly Max, in step
// again.
func (b Backoff) decorrelated(previous time.Duration, r float64) time.Duration {
	low := float64(min(b.Initial, b.Max))
	high := min(float64(b.Max), 3*max(float64(previous), low))
	return toDuration(low + r*(high-low))
}

// spread applies the jitter to b. DECORRELATED does not grow from b: see [Backoff.Delay].
func (j Jitter) spread(b, r float64) float64 {
	switch j {
	case JitterNone:
		return b
	case JitterEqual:
		return b/2 + r*b/2
	case JitterProportional:
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

// reportFixed reports a multiplier together with growth FIXED, which is exponential growth by 1: it would mean something else
// to gRPC.
func reportFixed(report *document.Report, prefix string, g policyv1.Growth, multiplier float64) {
	if g == policyv1.Growth_GROWTH_FIXED && multiplier != 1 && multiplier > 0 {
		report.Errorf(prefix+"backoffMultiplier", multiplier, "must be 1 with growth FIXED, so that gRPC reads the same")
	}
}

func checkBackoff(report *document.Report, prefix string, b Backoff) {
	if b.Initial <= 0 {
		report.Errorf(prefix+"initialBackoff", b.Initial, "must be more than 0s")
	}
	if b.Max <= 0 {
		report.Errorf(prefix+"maxBackoff", b.Max, "must be more than 0s")
	}
	if !(b.Multiplier > 0) || math.IsInf(b.Multiplier, 0) { // also true for NaN
		report.Errorf(prefix+"backoffMultiplier", b.Multiplier, "must be a number more than 0")
	}
	checkWord(report, prefix+"jitter", b.Jitter, policyv1.Jitter(0))
}
