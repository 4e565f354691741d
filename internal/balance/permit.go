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

// Charge is the price of an extra attempt: the cost of its kind, times the factor.
type Charge struct {
	Kind   Kind
	Factor float64
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

// Permit is a [budget.Permit]. Package budget exports it, so that the fields that only the engine needs stay unexported.
type Permit struct {
	Cost int64 // the charge, in a unit of the budget

	kind       Kind
	promised   bool          // a lease was asked to pay
	reserve    bool          // the reserve of a default budget has paid
	generation uint32        // how many reloads the budget had seen
	at         time.Duration // the time of the charge; if promised, the time for Confirm
	lease      uint64        // the number of the [Draw] that has paid; 0: none
}

// Promise returns a permit that must be confirmed at the given time, when the answer is usually known: before, it is refused.
func Promise(at time.Duration) Permit { return Permit{promised: true, at: at} }

// Promised reports whether a permit must be confirmed, and at which time.
func Promised(p Permit) (at time.Duration, ok bool) { return p.at, p.promised }

// Confirmed returns a confirmed permit.
func Confirmed(p Permit) Permit {
	p.promised = false
	return p
}
