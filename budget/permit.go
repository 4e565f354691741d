// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math"
	"time"
)

// Kind says what an extra attempt follows.
type Kind uint8

// The kinds. [Ratio] and [Refund] charge them differently.
const (
	// KindFailure follows a failure that was reported.
	KindFailure Kind = iota
	// KindTimeout follows an attempt that has not answered in time. It may still be running, so that
	// the server works on two: the dearest kind.
	KindTimeout
	// KindHedge is sent beside attempts that are not late yet, since others of the method have been
	// answered by then: cost 1, unless set otherwise.
	KindHedge
	// KindUnsent follows an attempt that provably never left this client, so no server has seen a request
	// yet. [Ratio], [Throttle] and [Refund] grant it for nothing; [Concurrent] counts it as any other.
	// Not for an attempt that a permit was taken for: that permit is still there for the next one.
	KindUnsent
)

// String is "failure", "timeout", "hedge" or "unsent", the words that metrics and logs use.
func (k Kind) String() string {
	switch k {
	case KindFailure:
		return "failure"
	case KindTimeout:
		return "timeout"
	case KindHedge:
		return "hedge"
	case KindUnsent:
		return "unsent"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Charge is what an extra attempt is charged for.
type Charge struct {
	Kind Kind
	// Factor multiplies the cost of the kind, for failures that are dearer or cheaper to repeat than
	// others. More than 0, at most [MaxFactor]; anything else counts as 1.
	Factor float64
}

// MaxFactor is the largest factor of a [Charge].
const MaxFactor = 100

// of is the charge for something that costs base: never less than one of its units.
func (c Charge) of(base int64) int64 {
	if !(c.Factor > 0 && c.Factor <= MaxFactor) { // NaN too
		return base
	}
	return max(int64(math.Round(float64(base)*c.Factor)), 1)
}

// Permit is the right to send one extra attempt, from [Budget.Withdraw]. Exactly one of
// [Budget.Return] and [Budget.Settle] follows, at the budget that gave it. The fields are exported
// for other implementations of [Budget]; a caller leaves them as they are.
//
// It has four words, so that the compiler keeps it in registers.
type Permit struct {
	Charge Charge
	At     time.Duration // the time that it was charged to
	Cost   int64         // what was charged, in a unit of the budget's own
}
