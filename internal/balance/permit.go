// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"time"
)

// Kind is a [budget.Kind], and has its values.
type Kind uint8

// The kinds.
const (
	KindFailure Kind = iota + 1
	KindTimeout
	KindHedge
	KindUnsent
)

// prices are what extra attempts cost or earn, by their kinds.
type prices struct{ failure, timeout, hedge int64 }

// of is the price of a kind: of one that is not known, that of a timeout.
func (p prices) of(k Kind) int64 {
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

// Charge is what an extra attempt is charged for: the cost of its kind, times the factor.
type Charge struct {
	Kind   Kind
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

// Permit is a [budget.Permit]. It is public under that name, so that what the engine needs of it stays unexported.
type Permit struct {
	Cost int64 // what was charged, in a unit of the budget's own

	kind       Kind
	promised   bool          // a lease was asked to pay
	reserve    bool          // the reserve of a default budget has paid
	generation uint32        // how many reloads the budget had seen
	at         time.Duration // the time that it was charged to; if promised, when Confirm can be asked
	lease      uint64        // the number of the [Draw] that has paid; 0: none
}

// Promise is a permit that must be confirmed, at a time when the answer is there as a rule: before, it is refused.
func Promise(at time.Duration) Permit { return Permit{promised: true, at: at} }

// Promised reports whether a permit must be confirmed, and when it can be.
func Promised(p Permit) (at time.Duration, ok bool) { return p.at, p.promised }

// Confirmed is the permit when it has been.
func Confirmed(p Permit) Permit {
	p.promised = false
	return p
}
