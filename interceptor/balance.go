// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
)

// balance is a budget of the calls that share it, with counts. Calls may hold it for longer than it is in the table: they then ask the
// one that is there.
//
//	in the table ──┬── equal to a new one, and there are too many ─► evicted: what asks it gets the table's
//	               └── a reload has changed kind, scope or name ─► dropped: calls that hold it go on with it
type balance struct {
	of      *budgets
	name    string // with which policies name it
	user    budgetUser
	shared  bool // by all further targets
	budget  budget.Budget
	ofFile  reloadable // budget, if it is the policy file's; nil for one of WithBudget
	counted budgetKey  // the key under which its withdrawals count
	counts  *counts    // those

	evicted atomic.Bool // set under mu
	mu      sync.Mutex  // guards all below
	out     int         // permits that are out
	asked   int         // how often a permit was asked for
}

var _ budget.Budget = (*balance)(nil)

// reloadable is a budget of package budget.
type reloadable interface {
	budget.Budget
	budget.Stater

	// Reload changes the config. It scales the balance, and never refills it, so it is safe in the middle of an outage. It refuses a
	// config that is out of bounds or of another kind, and then changes nothing.
	Reload(now time.Time, c budget.Config) error
	// Filled returns how full the budget is: 1 is full, with 0 it allows nothing, and a throttle may have less.
	Filled(now time.Time) float64
	// Limit takes what makes the budget fuller than that, for one that replaces another one.
	Limit(now time.Time, filled float64)
	// Fresh reports whether a new budget with the same config would have forgotten nothing but refunds.
	Fresh(now time.Time) bool
}

// empty allows no extra attempt.
type empty struct{}

func (empty) Observe(time.Time, budget.Event) {}

func (empty) Allow(time.Time, budget.Cause) (func(time.Time, budget.End), bool) { return nil, false }

func (empty) State(time.Time) budget.State { return budget.State{} }

// stale reports whether an entry that was made at a time needs another balance: this one is evicted, or is the shared one, and there may
// be room for one of its own again. That is looked up once a second.
func (b *balance) stale(made, now time.Duration) bool {
	return b.evicted.Load() || b.shared && second(now) != second(made)
}

// Observe implements [budget.Budget].
func (b *balance) Observe(now time.Time, e budget.Event) {
	if b.evicted.Load() {
		b = b.of.find(b.name, b.user)
	}
	b.budget.Observe(now, e)
}

// Allow implements [budget.Budget]. It counts the permits.
func (b *balance) Allow(now time.Time, c budget.Cause) (ended func(time.Time, budget.End), ok bool) {
	for !b.hold() {
		b = b.of.find(b.name, b.user)
	}
	defer func() {
		if !ok { // refused, or a user's budget has panicked
			b.release()
			b.counts.refused.Add(1)
		}
	}()
	inner, ok := b.budget.Allow(now, c)
	if !ok {
		return nil, false
	}
	return func(now time.Time, how budget.End) {
		defer b.release()
		if how != budget.EndUnsent {
			b.counts.granted.Add(1)
		}
		if inner != nil {
			inner(now, how)
		}
	}, true
}

// hold counts a permit, so that the balance is not evicted. It returns false if it was.
func (b *balance) hold() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.evicted.Load() {
		return false
	}
	b.out++
	b.asked++
	return true
}

// release ends what hold has begun.
func (b *balance) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out--
}

// use returns how many permits are out, and how often one was asked for.
func (b *balance) use() (out, asked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out, b.asked
}

// unused reports whether the balance is equal to a new one, and no permit is out; and how often one was asked for until then.
func (b *balance) unused(now time.Duration) (asked int, is bool) {
	out, asked := b.use()
	return asked, out == 0 && b.fresh(now)
}

// evict ends the balance, if no permit was asked for since that many times. Then it returns true.
func (b *balance) evict(asked int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked != asked {
		return false
	}
	b.evicted.Store(true)
	return true
}

// fresh reports whether a new balance would have forgotten nothing but refunds. A budget of the program is read, so no lock may be held.
func (b *balance) fresh(now time.Duration) bool {
	if b.ofFile != nil {
		return b.ofFile.Fresh(clock.Time(now))
	}
	read, readable := b.budget.(budget.Stater)
	if !readable {
		return true
	}
	is := read.State(clock.Time(now))
	return is.Balance >= is.Capacity
}

// withdrawals counts granted and refused withdrawals.
type withdrawals struct{ granted, refused uint64 }

// counts are those of balances with one key. A dropped balance still counts, as long as calls hold it.
type counts struct {
	granted atomic.Uint64 // extra attempts that were sent and have ended
	refused atomic.Uint64
}

func (c *counts) withdrawals() withdrawals { return withdrawals{c.granted.Load(), c.refused.Load()} }

// mostCounted bounds the targets and services that are counted by name.
const mostCounted = 1000

// otherTarget stands for the targets beyond that.
const otherTarget = "other"

// budgetCounts are the withdrawals of all balances. The key under which a balance counts is fixed when it is made, so that nothing is
// counted twice.
type budgetCounts struct {
	places map[budgetKey]*counts
}

// place returns the key under which a new balance counts, and its counts.
func (c *budgetCounts) place(key budgetKey) (budgetKey, *counts) {
	if c.places == nil {
		c.places = map[budgetKey]*counts{}
	}
	if c.places[key] == nil && len(c.places) >= mostCounted {
		key.target, key.service = otherTarget, ""
	}
	if c.places[key] == nil {
		c.places[key] = new(counts)
	}
	return key, c.places[key]
}

// free frees the place of a dropped balance for another one, if it has no counts and no permit is out.
func (c *budgetCounts) free(b *balance) {
	if out, _ := b.use(); out == 0 && b.counts.withdrawals() == (withdrawals{}) && b.counted.target != otherTarget {
		delete(c.places, b.counted)
	}
}
