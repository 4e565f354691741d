// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package frombudget has the engine's form of budgets and of their configs.
package frombudget

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// Config returns the engine's config, or nil for a pointer.
func Config(c budget.Config) balance.Config {
	switch c := c.(type) {
	case nil:
		return balance.Default()
	case budget.RatioConfig:
		return balance.RatioConfig(c)
	case budget.ThrottleConfig:
		return balance.ThrottleConfig(c)
	case budget.ConcurrentConfig:
		return balance.ConcurrentConfig(c)
	case budget.RefundConfig:
		return balance.RefundConfig(c)
	default:
		return nil
	}
}

// Budget returns the engine's budget: the inner one for a budget of package budget, or one that calls the methods of a user's
// budget.
func Budget(b budget.Budget) balance.Budget {
	if own, ok := b.(interface{ Inner() balance.Budget }); ok { // no other type can have this method
		return own.Inner()
	}
	return foreign{b}
}

// foreign is a budget implemented by a user.
type foreign struct{ budget budget.Budget }

// Start implements [balance.Budget].
func (f foreign) Start(now time.Duration) {
	f.budget.Observe(clock.Time(now), budget.EventCallStarted)
}

// Fail implements [balance.Budget].
func (f foreign) Fail(now time.Duration) {
	f.budget.Observe(clock.Time(now), budget.EventAttemptFailed)
}

// Finish implements [balance.Budget].
func (f foreign) Finish(now time.Duration, e balance.End) {
	event := budget.EventCallFailed
	switch e {
	case balance.EndAtOnce:
		event = budget.EventCallSucceeded
	case balance.EndSucceeded:
		event = budget.EventCallRecovered
	case balance.EndFailed:
	}
	f.budget.Observe(clock.Time(now), event)
}

// Withdraw implements [balance.Budget].
func (f foreign) Withdraw(now time.Duration, c balance.Charge) (balance.Permit, bool) {
	p, ok := f.budget.Withdraw(clock.Time(now), budget.Charge(c))
	return balance.Permit(p), ok
}

// Return implements [balance.Budget].
func (f foreign) Return(now time.Duration, p balance.Permit) {
	f.budget.Settle(clock.Time(now), budget.Permit(p), budget.OutcomeUnsent)
}

// Settle implements [balance.Budget].
func (f foreign) Settle(now time.Duration, p balance.Permit, helped bool) {
	outcome := budget.OutcomeFailed
	if helped {
		outcome = budget.OutcomeHelped
	}
	f.budget.Settle(clock.Time(now), budget.Permit(p), outcome)
}

// Balance implements [balance.Budget].
func (f foreign) Balance(now time.Duration) float64 { return f.state(now).Balance }

// Capacity implements [balance.Budget].
func (f foreign) Capacity(now time.Duration) float64 { return f.state(now).Capacity }

// Granted implements [balance.Budget].
func (f foreign) Granted() uint64 { return f.state(clock.Now()).Granted }

// Denied implements [balance.Budget].
func (f foreign) Denied() uint64 { return f.state(clock.Now()).Denied }

func (f foreign) state(now time.Duration) budget.State { return f.budget.State(clock.Time(now)) }
