// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
)

// RefundConfig is what a [Refund] is made from, in tokens with at most three decimals, which the budget
// keeps exactly. The fields are taken as they are, zeros too: start from [DefaultRefund] and change what
// differs.
type RefundConfig struct {
	Capacity    float64 // what the bucket holds, and starts with. 1 to 1,000,000
	RetryCost   float64 // of an extra attempt, except after a timeout. 0.001 to Capacity
	TimeoutCost float64 // of an extra attempt after a timeout. 0.001 to Capacity
	Success     float64 // what a call earns that succeeds at once. 0 to Capacity
}

// DefaultRefund is 500, 5, 10 and 1: the numbers of the AWS SDKs.
func DefaultRefund() RefundConfig {
	return RefundConfig{Capacity: 500, RetryCost: 5, TimeoutCost: 10, Success: 1}
}

func (c RefundConfig) check() error {
	most := c.Capacity
	if !(most >= 1 && most <= 1e6) {
		most = 1e6 // the capacity itself is reported
	}
	return errors.Join(
		checkNumber("Capacity", c.Capacity, 1, 1e6, 3),
		checkNumber("RetryCost", c.RetryCost, 0.001, most, 3),
		checkNumber("TimeoutCost", c.TimeoutCost, 0.001, most, 3),
		checkNumber("Success", c.Success, 0, most, 3),
	)
}

// milli is the config in milli-tokens, exactly.
func (c RefundConfig) milli() (prices, int64) {
	whole := func(tokens float64) int64 { return int64(math.Round(tokens * tokenInMilli)) }
	return prices{whole(c.RetryCost), whole(c.TimeoutCost), whole(c.Success)}, whole(c.Capacity)
}

// prices are in milli-tokens.
type prices struct{ retry, timeout, success int64 }

func (p prices) cost(c Charge) int64 {
	switch c.Kind {
	case KindUnsent:
		return 0
	case KindFailure, KindHedge:
		return c.of(p.retry)
	default:
		return c.of(p.timeout)
	}
}
