// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgetKind tells balances of one name apart, whose budget has become one of another kind.
type budgetKind uint8

const (
	ratio budgetKind = iota
	throttle
	concurrent
	refund
)

func kindOfBudget(spec policy.BudgetSpec) budgetKind {
	switch {
	case spec.Throttle != nil:
		return throttle
	case spec.Concurrent != nil:
		return concurrent
	case spec.Refund != nil:
		return refund
	default:
		return ratio
	}
}

// build makes a budget.
func build(spec policy.BudgetSpec) (budget.Budget, error) {
	switch kindOfBudget(spec) {
	case throttle:
		return budget.NewThrottle(budget.ThrottleConfig(*spec.Throttle))
	case concurrent:
		return budget.NewConcurrent(budget.ConcurrentConfig(*spec.Concurrent))
	case refund:
		return budget.NewRefund(budget.RefundConfig(*spec.Refund))
	default:
		return budget.NewRatio(budget.RatioConfig(*spec.Ratio))
	}
}

// reload gives a budget other settings of its kind, which have been checked.
func reload(b budget.Budget, now time.Duration, spec policy.BudgetSpec) error {
	switch b := b.(type) {
	case *budget.Throttle:
		return b.Reload(now, budget.ThrottleConfig(*spec.Throttle))
	case *budget.Concurrent:
		return b.Reload(now, budget.ConcurrentConfig(*spec.Concurrent))
	case *budget.Refund:
		return b.Reload(now, budget.RefundConfig(*spec.Refund))
	case *budget.Ratio:
		return b.Reload(now, budget.RatioConfig(*spec.Ratio))
	default: // budget.Empty, if it could not be made
		return nil
	}
}

// drain leaves nothing in a budget. What a concurrent one allows is no balance.
func drain(b budget.Budget) {
	if b, ok := b.(interface{ Drain(now time.Duration) }); ok {
		b.Drain(budget.Now())
	}
}
