// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

// Backoff configures the wait before retries. It has no state.
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

func (b Backoff) withDefaults() Backoff {
	b.Jitter = cmp.Or(b.Jitter, JitterFull)
	return b
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
	checkWord(report, prefix+"jitter", b.Jitter, jitters...)
}
