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
	Kind       Kind
	Factor     float64
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
	Cost       int64
	At         time.Duration
	Part       uint64
	Generation uint32
	Kind       Kind
	Reserve    bool
}
