// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"time"
)

// Kind is a [budget.Kind], with the same values.
type Kind uint8

// The kinds.
const (
	KindFailure Kind = iota + 1
	KindTimeout
	KindHedge
	KindUnsent
)

// prices are the costs or bonuses of extra attempts, by kind.
type prices struct{ failure, timeout, hedge int64 }

// price returns the price of a kind; for an unknown kind, that of a timeout.
func (p prices) price(k Kind) int64 {
	switch k {
	case KindUnsent:
		return 0
	case 0, KindFailure:
		return p.failure
	case KindHedge:
		return p.hedge
	default:
		return p.timeout
	}
}

// Charge is a [budget.Charge].
type Charge struct {
	Kind Kind
	// Factor multiplies the cost of the kind, for failures that cost more or less to retry: more than 0, at most 100; any other
	// value counts as 1.
	Factor float64
	// EarnedOnly means that only what calls have earned may pay, and no reserve: MinPerSecond of a ratio budget, or Min of a
	// concurrent one. The other kinds have none.
	EarnedOnly bool
}

// MaxFactor is the largest factor of a [Charge].
const MaxFactor = 100

// cost returns the cost of the kind times the factor: at least 1, unless the kind is free.
func (c Charge) cost(p prices) int64 {
	cost := p.price(c.Kind)
	if cost == 0 || !(c.Factor > 0 && c.Factor <= MaxFactor) { // also true for NaN
		return cost
	}
	return max(int64(math.Round(float64(cost)*c.Factor)), 1)
}

// Permit is a [budget.Permit].
type Permit struct {
	Cost       int64         // the charge, in a unit of the budget
	Part       uint64        // which part of a composed budget has paid; the budgets of package budget leave it 0
	at         time.Duration // when it was charged
	generation uint32        // how many configs the budget had before
	Kind       Kind          // of the charge
	reserve    bool          // a reserve has paid
}
