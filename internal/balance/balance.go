// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balance has the engine's form of the budgets of package budget. It starts no
// goroutine, does no I/O and takes the time as an argument, so that clients, simulations and tests run the same code.
package balance

import (
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/clock"
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
	// Missed records an attempt that had no response at its call's deadline, while few others were fast.
	Missed(now time.Duration)
	// Withdraw asks for one extra attempt.
	Withdraw(now time.Duration, c budget.Charge) (budget.Permit, bool)
	// Return returns the permit of an extra attempt that was never sent.
	Return(now time.Duration, p budget.Permit)
	// Settle records that the extra attempt of p has ended, and whether it helped.
	Settle(now time.Duration, p budget.Permit, helped bool)
	// Finish records the event that is the end of a call, after its permits are settled. If the call succeeded immediately, now may be as old as its
	// start.
	Finish(now time.Duration, e budget.Event)
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
	// Reload changes the config. It rejects a config that is out of bounds or of another kind, and then changes nothing.
	Reload(now time.Duration, c budget.Config) error
	// Drain sets the balance to zero, for a budget that replaces another one. It does not change what is in flight.
	Drain(now time.Duration)
	// Fresh reports whether the budget behaves like a new one with the same config: nothing that it has seen counts any longer.
	// Replacing it would lose only Granted and Denied.
	Fresh(now time.Duration) bool
}

// Unlimited grants every extra attempt and counts nothing.
var Unlimited = Of(budget.Unlimited)

// Empty returns a budget that grants no extra attempt.
func Empty() Budget { return &empty{Budget: Unlimited} }

type empty struct {
	Budget

	denied atomic.Uint64
}

func (e *empty) Withdraw(time.Duration, budget.Charge) (budget.Permit, bool) {
	e.denied.Add(1)
	return budget.Permit{}, false
}

func (*empty) Balance(time.Duration) float64  { return 0 }
func (*empty) Capacity(time.Duration) float64 { return 0 }
func (e *empty) Denied() uint64               { return e.denied.Load() }

// Names returns the names of the kinds, as in policy files.
func Names() []string { return []string{"ratio", "throttle", "concurrent"} }

// Name returns the name of a config's kind: one of [Names].
func Name(c budget.Config) string {
	switch c.(type) {
	case budget.ThrottleConfig:
		return "throttle"
	case budget.ConcurrentConfig:
		return "concurrent"
	default:
		return "ratio"
	}
}

// New returns a budget of package budget.
func New(c budget.Config) (Reloadable, error) {
	b, err := budget.New(c)
	if err != nil {
		return nil, err
	}
	own, _ := Of(b).(Reloadable) // as all kinds are
	return own, nil
}

// own is a budget of package budget: no other type can have Fields.
type own interface {
	Inner() any
	Fields() []bounds.Field
}

// Fields returns the values of a valid config and their bounds.
func Fields(c budget.Config) []bounds.Field {
	b, _ := budget.New(c)
	made, _ := b.(own)
	return made.Fields()
}

// Of returns the engine's form of a budget: the inner one for a budget of package budget, or one that calls the methods of a
// user's budget.
func Of(b budget.Budget) Budget {
	if b, ok := b.(own); ok {
		inner, _ := b.Inner().(Budget)
		return inner
	}
	return foreign{b}
}

// foreign is a budget implemented by a user.
type foreign struct{ budget budget.Budget }

// Start implements [Budget].
func (f foreign) Start(now time.Duration) { f.budget.Observe(clock.Time(now), budget.EventCallStarted) }

// Fail implements [Budget].
func (f foreign) Fail(now time.Duration) {
	f.budget.Observe(clock.Time(now), budget.EventAttemptFailed)
}

// Missed implements [Budget].
func (f foreign) Missed(now time.Duration) {
	f.budget.Observe(clock.Time(now), budget.EventDeadlineMissed)
}

// Finish implements [Budget].
func (f foreign) Finish(now time.Duration, e budget.Event) { f.budget.Observe(clock.Time(now), e) }

// Withdraw implements [Budget].
func (f foreign) Withdraw(now time.Duration, c budget.Charge) (budget.Permit, bool) {
	return f.budget.Withdraw(clock.Time(now), c)
}

// Return implements [Budget].
func (f foreign) Return(now time.Duration, p budget.Permit) { f.budget.Return(clock.Time(now), p) }

// Settle implements [Budget].
func (f foreign) Settle(now time.Duration, p budget.Permit, helped bool) {
	f.budget.Settle(clock.Time(now), p, helped)
}

// Balance implements [Budget].
func (f foreign) Balance(now time.Duration) float64 { return f.state(now).Balance }

// Capacity implements [Budget].
func (f foreign) Capacity(now time.Duration) float64 { return f.state(now).Capacity }

// Granted implements [Budget].
func (f foreign) Granted() uint64 { return f.state(clock.Now()).Granted }

// Denied implements [Budget].
func (f foreign) Denied() uint64 { return f.state(clock.Now()).Denied }

func (f foreign) state(now time.Duration) budget.State { return f.budget.State(clock.Time(now)) }
