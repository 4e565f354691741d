// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"
	"weak"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// keptBalance is a budget in the table. It never changes; another one takes its place.
//
//	new ──► in use ──── a sweep finds it fresh ────► idle ──── a sweep finds that nobody holds it, still fresh ────► dropped
//	          ▲                                       │
//	          └──────────────── a call ───────────────┘
type keptBalance struct {
	budget balance.Reloadable
	used   *heldBudget              // nil while it is idle
	held   weak.Pointer[heldBudget] // by calls, or used

	made    time.Duration
	counted budgetKey // what its withdrawals are counted as
}

// heldBudget is a budget as calls hold it, from their start to their end. Counting them would have all calls write to
// one place. The garbage collector knows without that when nobody holds it any more.
type heldBudget struct{ balance.Reloadable }

// find returns the balance for a key; nil if there is none, or it is idle.
func (b *budgets) find(key budgetKey) *heldBudget {
	if found, ok := b.load(key); ok {
		return found.used
	}
	return nil
}

func (b *budgets) load(key budgetKey) (*keptBalance, bool) {
	found, _ := b.table.Load(key)
	kept, ok := found.(*keptBalance)
	return kept, ok
}

// hold returns the balance for a key, and has it in use; nil if there is none. It requires Retrier.reloading.
func (b *budgets) hold(key budgetKey) *heldBudget {
	found, ok := b.load(key)
	switch {
	case !ok:
		return nil
	case found.used == nil:
		held := found.held.Value()
		if held == nil {
			held = &heldBudget{found.budget}
		}
		return b.store(key, held, found)
	default:
		return found.used
	}
}

// store puts a balance that is in use into the table; is says what it is beside that.
func (b *budgets) store(key budgetKey, held *heldBudget, is *keptBalance) *heldBudget {
	b.table.Store(key, &keptBalance{budget: held.Reloadable, used: held, held: weak.Make(held), made: is.made, counted: is.counted})
	return held
}

// keepBalance adds a balance. It requires Retrier.reloading.
func (b *budgets) keepBalance(key budgetKey, own balance.Reloadable) *heldBudget {
	if b.count >= max(b.sweepAt, leastSwept) {
		used := b.sweep(clock.Now())
		b.sweepAt = b.count + max(used, leastSwept)
	}
	b.count++
	return b.store(key, &heldBudget{own}, &keptBalance{made: clock.Now(), counted: b.counts.place(key)})
}

// leastSwept is the number of balances below which none is dropped.
const leastSwept = 100

// sweep drops the balances that nobody misses, as of targets that are gone: no call holds them, and a fresh one could
// not be told from them. It returns how many stay in use. It requires Retrier.reloading.
func (b *budgets) sweep(now time.Duration) (used int) {
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*keptBalance)
		switch {
		case b.replaced.before(key, now) || !kept.budget.Fresh(now): // one that begins with nothing is not fresh
			used++
		case kept.used != nil:
			b.table.Store(key, &keptBalance{budget: kept.budget, held: kept.held, made: kept.made, counted: kept.counted})
		case kept.held.Value() == nil:
			b.drop(key, kept)
		}
		return true
	})
	return used
}

// drop takes a balance out of the table. Its counts stay. It requires Retrier.reloading.
func (b *budgets) drop(key budgetKey, kept *keptBalance) {
	b.table.Delete(key)
	b.counts.keep(kept)
	b.count--
}

// reload gives balances the settings of the policy file's new rules, if they have changed. A balance whose
// budget has become another kind or scope is forgotten, and those that take its place begin with nothing.
// Where the file does not name a budget any more, its balance waits for it to come back. It requires
// Retrier.reloading.
func (b *budgets) reload(rules map[string]budgetRule) {
	changed := map[string]budgetRule{} // what they were
	for name, rule := range rules {
		if before, ok := b.rules[name]; ok && before != rule {
			changed[name] = before
		}
		b.rules[name] = rule
	}
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*keptBalance)
		rule := rules[key.name]
		switch before, ok := changed[key.name]; {
		case !ok || before.config.Name() != key.kind || key.source != budgetOfPolicies: // it is as it was, or of a service config
		case before.alike(rule):
			_ = kept.budget.Reload(clock.Now(), rule.settings(key.shadow)) // it has been checked
		default:
			b.drop(key, kept)
			b.replaced.noteReplaced(key, clock.Now())
		}
		return true
	})
}
