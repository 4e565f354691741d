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

// The kinds. [Ratio] and [Refund] charge them differently; a kind that they do not know costs what
// KindTimeout costs.
const (
	// KindFailure follows a failure that was reported.
	KindFailure Kind = iota
	// KindTimeout follows an attempt that has not answered in time. It may still be running, so that
	// the server works on two: the dearest kind.
	KindTimeout
	// KindHedge is sent beside attempts that are not late yet, since others of the method have been
	// answered by then. The server works on both, so a [Ratio] charges as much as for KindTimeout unless its config
	// says otherwise. A [Refund] charges what KindFailure costs.
	KindHedge
	// KindUnsent follows an attempt that provably never left this client, so no server has seen a request
	// yet. [Ratio], [Throttle] and [Refund] grant it for nothing, [Concurrent] counts it as any other, and
	// [Empty] refuses it. It is for the first attempt of a call: an extra attempt that was not sent has a
	// permit, which its successor uses.
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

// prices are what extra attempts cost or earn, by their kinds.
type prices struct{ failure, timeout, hedge int64 }

func (p prices) of(k Kind) int64 {
	switch k {
	case KindUnsent:
		return 0
	case KindFailure:
		return p.failure
	case KindHedge:
		return p.hedge
	default:
		return p.timeout
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

// cost is that of the kind times the factor: never less than 1, unless the kind is free.
func (c Charge) cost(p prices) int64 {
	cost := p.of(c.Kind)
	if cost == 0 || !(c.Factor > 0 && c.Factor <= MaxFactor) { // NaN too
		return cost
	}
	return max(int64(math.Round(float64(cost)*c.Factor)), 1)
}

// Permit is the right to send one extra attempt, from [Budget.Withdraw]:
//
//	Withdraw ─► permit ─┬─► the attempt is sent, and ends ─► Settle(permit, helped)
//	                    └─► it is not sent ────────────────► Return(permit)
//
// Of a [Confirmer], Confirm comes before, and a permit that it refuses is over. Exactly one of the two follows, once, at the budget that gave the permit. It may be kept for as long as a
// call lives, be passed on, and be copied; the zero Permit is none. The fields are exported for other
// implementations of [Budget]; a caller leaves them as they are.
type Permit struct {
	Kind       Kind
	Asked      bool          // a [Lease] was asked to pay: see [Confirmer]
	Reserve    bool          // the reserve of a default budget has paid
	Generation uint32        // how many reloads the budget had seen
	At         time.Duration // the time that it was charged to; if Asked, when Confirm can be asked: it refuses before, as a rule
	Cost       int64         // what was charged, in a unit of the budget's own
	Lease      uint64        // the number of the [Draw] that has paid; 0: none
}
