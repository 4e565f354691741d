// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package frombudget has the engine's form of budgets.
package frombudget

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

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
	return f.budget.Withdraw(clock.Time(now), c)
}

// Return implements [balance.Budget].
func (f foreign) Return(now time.Duration, p balance.Permit) {
	f.budget.Return(clock.Time(now), p)
}

// Settle implements [balance.Budget].
func (f foreign) Settle(now time.Duration, p balance.Permit, helped bool) {
	f.budget.Settle(clock.Time(now), p, helped)
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
