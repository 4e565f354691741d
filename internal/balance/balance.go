// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balance implements the budgets of package budget, with methods that only the engine and the Retrier use. It starts no
// goroutine, does no I/O and takes the time as an argument, so that clients, simulations and tests run the same code.
package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// Budget is a [budget.Budget] as the engine uses it: with a method for each event, and times of package clock. All methods are safe for concurrent use, and none waits. They run under the lock of a call.
//
//	Start ─► attempt ─┬─► OK ──────────────────────────────────────────────────────────────► Finish
//	                  └─► Fail ─► Withdraw ─┬─► refused ───────────────────────────────────► Finish
//	                                        └─► permit ─┬─► sent, and ends ─► Settle
//	                                                    └─► not sent ───────► Return
type Budget interface {
	// Start records that a call begins. Its first attempt is always free.
	Start(now time.Duration)
	// Fail records a failed attempt that counts against the server.
	Fail(now time.Duration)
	// Withdraw asks for one extra attempt.
	Withdraw(now time.Duration, c Charge) (Permit, bool)
	// Return returns the permit of an extra attempt that was never sent.
	Return(now time.Duration, p Permit)
	// Settle records that the extra attempt of p has ended, and whether it helped.
	Settle(now time.Duration, p Permit, helped bool)
	// Finish records how a call ended, after its permits are settled. If the call succeeded at once, now may be as old as its
	// start.
	Finish(now time.Duration, e End)
	Reading
}

// Reading is the readable state of a budget.
type Reading interface {
	// Balance returns how many extra attempts of cost 1 would be granted now.
	Balance(now time.Duration) float64
	// Capacity returns what Balance would be if nothing were spent or in flight.
	Capacity(now time.Duration) float64
	// Granted returns how many permits were settled: those of extra attempts that were sent.
	Granted() uint64
	// Denied returns how many withdrawals have been refused.
	Denied() uint64
}

// Reloadable is a budget of [New], whose config may change while calls use it.
//
// A reload scales the balance: a half-full budget stays half full. It never refills, so it is safe in the middle of an outage.
// A permit from before a reload returns nothing, except that it ends its attempt in a concurrent budget. A reload with an
// unchanged config changes nothing.
type Reloadable interface {
	Budget
	// Kind returns the name of its kind: one of [Names].
	Kind() string
	// Reload changes the config. It refuses a config that is out of bounds or of another kind, and then changes nothing.
	Reload(now time.Duration, c Config) error
	// Drain sets the balance to zero, for a budget that replaces another one. It does not change what is in flight.
	Drain(now time.Duration)
	// Fresh reports whether the budget behaves like a new one with the same config: nothing that it has seen counts any longer.
	// Replacing it would lose only Granted and Denied.
	Fresh(now time.Duration) bool
}

// End is the result of a call.
type End uint8

// The results.
const (
	EndFailed    End = iota + 1 // with a status other than OK
	EndSucceeded                // with OK, after extra attempts were sent
	EndAtOnce                   // with OK, without extra attempts
)

// tally counts withdrawals.
type tally struct{ granted, denied atomic.Uint64 }

// Granted implements [Budget].
func (t *tally) Granted() uint64 { return t.granted.Load() }

// Denied implements [Budget].
func (t *tally) Denied() uint64 { return t.denied.Load() }

// indifferent is embedded in budgets that only withdrawals affect.
type indifferent struct{}

func (indifferent) Start(time.Duration)                {}
func (indifferent) Fail(time.Duration)                 {}
func (indifferent) Return(time.Duration, Permit)       {}
func (indifferent) Settle(time.Duration, Permit, bool) {}
func (indifferent) Finish(time.Duration, End)          {}

// Empty returns a budget that grants no extra attempt.
func Empty() Budget { return new(empty) }

type empty struct {
	indifferent
	tally
}

func (e *empty) Withdraw(time.Duration, Charge) (Permit, bool) {
	e.denied.Add(1)
	return Permit{}, false
}

func (*empty) Balance(time.Duration) float64  { return 0 }
func (*empty) Capacity(time.Duration) float64 { return 0 }

// Unlimited grants every extra attempt and counts nothing.
var Unlimited Budget = unlimited{}

type unlimited struct{ indifferent }

func (unlimited) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	return Permit{Kind: c.Kind, at: now}, true
}

func (unlimited) Balance(time.Duration) float64  { return math.Inf(1) }
func (unlimited) Capacity(time.Duration) float64 { return math.Inf(1) }
func (unlimited) Granted() uint64                { return 0 }
func (unlimited) Denied() uint64                 { return 0 }
