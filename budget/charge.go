// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// Charge is the price of an extra attempt.
type Charge struct {
	Cause Cause
	// Factor multiplies the cost of the cause, for failures that cost more or less to retry: more than 0, at most 100; any other
	// value counts as 1.
	Factor float64
	// EarnedOnly means that only what calls have earned may pay, and no reserve: MinPerSecond of a ratio budget, or Min of a
	// concurrent one. The other kinds have none.
	EarnedOnly bool
	// Slow means that fewer than two of the target's outcomes of the last 3 s were fast responses. Then a ratio budget charges for
	// [CauseFailure] as much as for [CauseTimeout].
	Slow bool
}

// Cause is what an extra attempt follows. The zero value means [CauseFailure].
type Cause uint8

// The causes. A ratio budget charges them differently. An unknown one costs as much as CauseTimeout.
const (
	// CauseFailure follows a reported failure.
	CauseFailure Cause = iota + 1
	// CauseTimeout follows an attempt that hasn't responded in time: within its timeout, or before a hedge's delay. That attempt may
	// still be running, so the server works on both: the most expensive cause.
	CauseTimeout
	// CauseUnsent follows an attempt that provably never left this client. Ratio and throttle budgets grant it for free,
	// and a concurrent budget counts it like any other. It only follows the first attempt of a call: an
	// unsent extra attempt has a permit, which its successor uses.
	CauseUnsent
)

// Permit is the right to send one extra attempt, from Withdraw to Settle or Return. It is a plain value: a budget finds in Settle
// what it has put in at Withdraw, and nothing else reads it. A budget composed of others hands on the permit of the one that has
// paid, and can note in Part which one that was.
type Permit struct {
	Cost       int64         // the charge, in a unit of the budget
	Part       uint64        // which part of a composed budget has paid; the budgets of this package leave it 0
	at         time.Duration // when it was charged
	generation uint32        // how many configs the budget had before
	Cause      Cause         // of the charge
	reserve    bool          // a reserve has paid
}

// prices are the costs or bonuses of extra attempts, by cause.
type prices struct{ failure, timeout int64 }

// price returns the price of a cause; for an unknown one, that of a timeout.
func (p prices) price(c Cause) int64 {
	switch c {
	case CauseUnsent:
		return 0
	case 0, CauseFailure:
		return p.failure
	default:
		return p.timeout
	}
}

// cost returns the cost of the cause times the factor: at least 1, unless the cause is free.
func (c Charge) cost(p prices) int64 {
	cost := p.price(c.Cause)
	if c.Slow && cost > 0 {
		cost = p.timeout
	}
	if cost == 0 || !(c.Factor > 0 && c.Factor <= bounds.MaxFactor) { // also true for NaN
		return cost
	}
	return max(int64(math.Round(float64(cost)*c.Factor)), 1)
}
