// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// kind is a budget as internal/balance describes it for the engine, with times of package clock.
type kind interface {
	Start(now time.Duration)
	Fail(now time.Duration)
	Missed(now time.Duration)
	Withdraw(now time.Duration, c Charge) (Permit, bool)
	Return(now time.Duration, p Permit)
	Settle(now time.Duration, p Permit, helped bool)
	Finish(now time.Duration, e Event)
	Balance(now time.Duration) float64
	Capacity(now time.Duration) float64
	counts
}

// counts are the numbers of withdrawals.
type counts interface {
	Granted() uint64
	Denied() uint64
}

// tally counts withdrawals.
type tally struct{ granted, denied atomic.Uint64 }

// Granted implements [counts].
func (t *tally) Granted() uint64 { return t.granted.Load() }

// Denied implements [counts].
func (t *tally) Denied() uint64 { return t.denied.Load() }

// indifferent is embedded in budgets that only withdrawals affect.
type indifferent struct{}

func (indifferent) Start(time.Duration)                {}
func (indifferent) Fail(time.Duration)                 {}
func (indifferent) Missed(time.Duration)               {}
func (indifferent) Return(time.Duration, Permit)       {}
func (indifferent) Settle(time.Duration, Permit, bool) {}
func (indifferent) Finish(time.Duration, Event)        {}

type unlimited struct{ indifferent }

func (unlimited) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	return Permit{Cause: c.Cause, at: now}, true
}

func (unlimited) Balance(time.Duration) float64  { return math.Inf(1) }
func (unlimited) Capacity(time.Duration) float64 { return math.Inf(1) }
func (unlimited) Granted() uint64                { return 0 }
func (unlimited) Denied() uint64                 { return 0 }
