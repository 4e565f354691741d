// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// Balance is a budget of the calls that share it, with counts. Entries hold it. One that has left the table makes them stale; calls that
// have begun go on with it.
//
//	in the table ──┬── the table is full, and it was used least recently ──► forgotten
//	               └── a reload has changed its kind or scope ─────────────► forgotten
type Balance struct {
	Use

	of      *Budgets
	Budget  budget.Budget
	ofFile  reloadable // budget, if it is the policy file's; nil for one of WithBudget
	counted Key        // the key under which its withdrawals count
	counts  *counts    // those

	out atomic.Int64 // permits that are out
}

var _ budget.Budget = (*Balance)(nil)

// reloadable is a budget of package budget.
type reloadable interface {
	budget.Budget
	budget.Stater

	// Reload changes the config. It scales the balance, and never refills it, so it is safe in the middle of an outage. It refuses a
	// config that is out of bounds or of another kind, and then changes nothing.
	Reload(now time.Time, c budget.Config) error
	// TimeToRetry returns how long time alone takes until the budget pays for a retry; 0 if it pays now, or never does by time alone.
	TimeToRetry(now time.Time) time.Duration
}

// empty allows no extra attempt.
type empty struct{}

func (empty) Observe(time.Time, budget.Event) {}

func (empty) Allow(time.Time, budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	return budget.No, nil
}

func (empty) State(time.Time) budget.State { return budget.State{} }

// Observe implements [budget.Budget].
func (b *Balance) Observe(now time.Time, e budget.Event) {
	b.of.Table.Touch(b)
	b.Budget.Observe(now, e)
}

// Allow implements [budget.Budget]. It counts the permits. A call that waits asks often, so only a No counts as refused, and none to a call
// that has waited for a connection, which is sent after all.
func (b *Balance) Allow(now time.Time, c budget.Cause) (a budget.Answer, ended func(time.Time, budget.End)) {
	b.of.Table.Touch(b)
	b.out.Add(1)
	defer func() {
		if a != budget.Yes {
			b.out.Add(-1)
		}
		if a == budget.No && c != budget.CauseReconnected { // or a user's budget has panicked
			b.counts.refused.Add(1)
		}
	}()
	a, inner := b.Budget.Allow(now, c)
	if a != budget.Yes {
		return a, nil
	}
	return a, func(now time.Time, how budget.End) {
		defer b.out.Add(-1)
		if how != budget.EndUnsent && c != budget.CauseReconnected {
			b.counts.granted.Add(1)
		}
		if inner != nil {
			inner(now, how)
		}
	}
}

// TimeToRetry returns how long time alone takes until the budget pays for a retry; 0 if it pays now, if time adds nothing, or for a budget
// of the program.
func (b *Balance) TimeToRetry(now time.Time) time.Duration {
	if b.ofFile == nil {
		return 0
	}
	return b.ofFile.TimeToRetry(now)
}

// Withdrawals counts granted and refused withdrawals.
type Withdrawals struct{ Granted, Refused uint64 }

// counts are those of balances with one key. A dropped balance still counts, as long as calls hold it.
type counts struct {
	granted atomic.Uint64 // extra attempts that were sent and have ended
	refused atomic.Uint64
}

func (c *counts) withdrawals() Withdrawals { return Withdrawals{c.granted.Load(), c.refused.Load()} }

// MostCounted bounds the targets and services that are counted by name.
const MostCounted = 1000

// otherTarget stands for the targets beyond that.
const otherTarget = "other"

// budgetCounts are the withdrawals of all balances. The key under which a balance counts is fixed when it is made, so that nothing is
// counted twice.
type budgetCounts struct {
	places map[Key]*counts
}

// place returns the key under which a new balance counts, and its counts.
func (c *budgetCounts) place(key Key) (Key, *counts) {
	if c.places == nil {
		c.places = map[Key]*counts{}
	}
	if c.places[key] == nil && len(c.places) >= MostCounted {
		key.Target, key.Service = otherTarget, ""
	}
	if c.places[key] == nil {
		c.places[key] = new(counts)
	}
	return key, c.places[key]
}

// free frees the place of a dropped balance for another one, if it has no counts and no permit is out.
func (c *budgetCounts) free(b *Balance) {
	if b.out.Load() == 0 && b.counts.withdrawals() == (Withdrawals{}) && b.counted.Target != otherTarget {
		delete(c.places, b.counted)
	}
}

// Uncounted reports whether the withdrawals count as those of target "other", because there are [MostCounted] targets and services.
func (b *Balance) Uncounted() bool { return b.counted.Target == otherTarget }
