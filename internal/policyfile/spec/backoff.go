// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Backoff configures the wait before retries. It has no state.
type Backoff struct {
	Initial    time.Duration // the first backoff before jitter; more than 0
	Max        time.Duration // the longest backoff before jitter; more than 0
	Multiplier float64       // growth from one retry to the next; more than 0

	// Growth is how the backoff grows. After i retries it is, up to Max, Initial · Multiplier^i with "EXPONENTIAL" or "";
	// Initial · (1 + Multiplier·i) with "LINEAR"; and Initial with "FIXED", whose Multiplier must be 1, as gRPC reads the same.
	Growth string
	// Jitter is the random spread. With b for the backoff after growth and cap, and r random in [0, 1): "NONE" is b, so that clients
	// stay in step, for tests; "FULL" or "" r·b, which spreads load best; "EQUAL" b/2 + r·b/2; "DECORRELATED"
	// Initial + r·(min(Max, 3·previous) − Initial); "PROPORTIONAL" b·(0.8 + 0.4·r), as in gRFC A6.
	Jitter string
}

func (b Backoff) withDefaults() Backoff {
	b.Growth = cmp.Or(b.Growth, "EXPONENTIAL")
	b.Jitter = cmp.Or(b.Jitter, "FULL")
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
	} else if b.notFixed() {
		report.Errorf(prefix+"backoffMultiplier", b.Multiplier, "must be 1 with growth FIXED, so that gRPC reads the same")
	}
}

// notFixed reports whether a backoff grows although its growth is FIXED: that is exponential growth by 1, and would mean something else
// to gRPC.
func (b Backoff) notFixed() bool { return b.Growth == "FIXED" && b.Multiplier != 1 }
