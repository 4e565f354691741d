// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balance is the inside of package budget: its kinds, and what only the engine and the Retrier ask of them. It
// starts no goroutine and does no I/O, and takes the time as an argument, so that a client, a simulation and a test run
// the same code.
package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// Budget is a [budget.Budget] as the engine uses it: with a method for each event, times of package clock, and
// permits that a pool may still have to pay for. All of its methods are safe for concurrent use and none waits. They run
// under the lock of a call.
//
//	Start ─► attempt ─┬─► OK ──────────────────────────────────────────────────────────────► Finish
//	                  └─► Fail ─► Withdraw ─┬─► refused ───────────────────────────────────► Finish
//	                                        └─► permit ─► Confirm, if it is promised ─┬─► refused: the permit is over
//	                                                                                  ├─► sent, and ends ─► Settle
//	                                                                                  └─► not sent ───────► Return
type Budget interface {
	// Start says that a call begins. Its first attempt is always free.
	Start(now time.Duration)
	// Fail says that an attempt ended in a failure that speaks against the server.
	Fail(now time.Duration)
	// Withdraw asks for one extra attempt.
	Withdraw(now time.Duration, c Charge) (Permit, bool)
	// Confirm says whether the attempt of a promised permit may be sent, when the wait is over. A permit that is refused is
	// neither returned nor settled, and is counted as denied. It is true of a permit that is not [Promised].
	Confirm(now time.Duration, p Permit) bool
	// Return gives back the permit of an extra attempt that was never sent.
	Return(now time.Duration, p Permit)
	// Settle says that the extra attempt of p has ended, and whether it helped.
	Settle(now time.Duration, p Permit, helped bool)
	// Finish says how a call ended, after its permits are settled. For a call that succeeded at once, now may be as old as
	// its start.
	Finish(now time.Duration, e End)
	Reading
}

// Reading is what a budget says of itself.
type Reading interface {
	// Balance is how many extra attempts of cost 1 would be granted now.
	Balance(now time.Duration) float64
	// Capacity is what Balance would be if nothing were spent or in flight.
	Capacity(now time.Duration) float64
	// Granted is how many withdrawals have been granted so far, those that were given back too.
	Granted() uint64
	// Denied is how many withdrawals have been refused so far.
	Denied() uint64
}

// Reloadable is a budget whose config may change while calls use it: one that [New] has made.
//
// A reload scales the balance: what was half full is half full. It never refills, so that it can be used
// in the middle of an outage. A permit from before a reload gives nothing back; that of a concurrent
// budget still ends what it began. A reload with the config that the budget has changes nothing.
type Reloadable interface {
	Budget
	// Kind is the name of its kind: one of [Names].
	Kind() string
	// Reload changes the config. One that is out of bounds or of another kind is refused, and changes
	// nothing.
	Reload(now time.Duration, c Config) error
	// Drain leaves nothing of the balance, for a budget that takes the place of another one. What is in
	// flight is no balance.
	Drain(now time.Duration)
	// Fresh reports whether one that is made anew, with the same config, could not be told from it: nothing of what
	// it has seen counts any more. Only its Granted and Denied would be lost.
	Fresh(now time.Duration) bool
	// Refill estimates how long it takes until an extra attempt is paid for, by time alone: 0 if it would be now, or if that
	// depends on other things than time.
	Refill(now time.Duration, c Charge) time.Duration
}

// End is how a call ended.
type End uint8

// The ends.
const (
	EndFailed    End = iota + 1 // with a status other than OK
	EndSucceeded                // with OK, after extra attempts were sent
	EndAtOnce                   // with OK, and no extra attempt was sent
)

// tally counts withdrawals.
type tally struct{ granted, denied atomic.Uint64 }

// Granted implements [Budget].
func (t *tally) Granted() uint64 { return t.granted.Load() }

// Denied implements [Budget].
func (t *tally) Denied() uint64 { return t.denied.Load() }

// indifferent is a budget to which nothing but withdrawals matters.
type indifferent struct{}

func (indifferent) Start(time.Duration)                {}
func (indifferent) Fail(time.Duration)                 {}
func (indifferent) Confirm(time.Duration, Permit) bool { return true }
func (indifferent) Return(time.Duration, Permit)       {}
func (indifferent) Settle(time.Duration, Permit, bool) {}
func (indifferent) Finish(time.Duration, End)          {}

// Empty grants no extra attempt.
var Empty Budget = new(empty)

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
	return Permit{kind: c.Kind, at: now}, true
}

func (unlimited) Balance(time.Duration) float64  { return math.Inf(1) }
func (unlimited) Capacity(time.Duration) float64 { return math.Inf(1) }
func (unlimited) Granted() uint64                { return 0 }
func (unlimited) Denied() uint64                 { return 0 }
