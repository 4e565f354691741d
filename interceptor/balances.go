// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"
	"weak"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// keptBalance is a budget in the table. It is immutable: changes replace it.
//
//	new ──► in use ──── a sweep finds it fresh ────► idle ──── a sweep finds it unheld, still fresh ────► dropped
//	          ▲                                       │
//	          └──────────────── a call ───────────────┘
type keptBalance struct {
	budget balance.Reloadable
	used   *heldBudget              // nil while it is idle
	held   weak.Pointer[heldBudget] // by calls, or by used

	made    time.Duration
	counted budgetKey // the key under which its withdrawals count
}

// heldBudget is a budget that calls hold from start to end. With a reference count, all calls would write to
// one word. Instead, the garbage collector finds out when the last call has ended.
type heldBudget struct{ balance.Reloadable }

// findBalance returns the balance for a key, or nil if there is none or it is idle.
func (b *budgets) findBalance(key budgetKey) *heldBudget {
	if found, ok := b.loadBalance(key); ok {
		return found.used
	}
	return nil
}

func (b *budgets) loadBalance(key budgetKey) (*keptBalance, bool) {
	found, _ := b.table.Load(key)
	kept, ok := found.(*keptBalance)
	return kept, ok
}

// hold returns the balance for a key and marks it as in use, or nil if there is none. Retrier.reloading must be held.
func (b *budgets) hold(key budgetKey) *heldBudget {
	found, ok := b.loadBalance(key)
	switch {
	case !ok:
		return nil
	case found.used == nil:
		held := found.held.Value()
		if held == nil {
			held = &heldBudget{found.budget}
		}
		return b.storeBalance(key, held, found)
	default:
		return found.used
	}
}

// storeBalance puts a balance that is in use into the table, with the other fields of is.
func (b *budgets) storeBalance(key budgetKey, held *heldBudget, is *keptBalance) *heldBudget {
	b.table.Store(key, &keptBalance{budget: held.Reloadable, used: held, held: weak.Make(held), made: is.made, counted: is.counted})
	return held
}

// keepBalance adds a balance. Retrier.reloading must be held.
func (b *budgets) keepBalance(key budgetKey, own balance.Reloadable) *heldBudget {
	if b.count >= max(b.sweepAt, leastSwept) {
		used := b.sweep(clock.Now())
		b.sweepAt = b.count + max(used, leastSwept)
	}
	b.count++
	return b.storeBalance(key, &heldBudget{own}, &keptBalance{made: clock.Now(), counted: b.counts.place(key)})
}

// leastSwept is the smallest table that is swept.
const leastSwept = 100

// sweep drops unused balances, such as those of former targets: no call holds them, and they equal a fresh
// one. It returns the number that stay in use. Retrier.reloading must be held.
func (b *budgets) sweep(now time.Duration) (used int) {
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*keptBalance)
		switch {
		case b.replaced.before(key, now) || !kept.budget.Fresh(now): // a balance that starts empty is not fresh
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

// drop removes a balance from the table. Its counts stay. Retrier.reloading must be held.
func (b *budgets) drop(key budgetKey, kept *keptBalance) {
	b.table.Delete(key)
	b.counts.keep(kept)
	b.count--
}

// reload gives balances the settings of the policy file's new rules, if they have changed. It drops the balance of a
// budget whose kind or scope has changed; its replacements start empty.
// If the file omits a budget, its balance stays in case the budget comes back.
// Retrier.reloading must be held.
func (b *budgets) reload(rules map[string]budgetRule) {
	changed := map[string]budgetRule{} // the old rules
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
		case !ok || before.config.Name() != key.kind || key.source != budgetOfPolicies: // it has not changed, or comes from a service config
		case before.alike(rule):
			_ = kept.budget.Reload(clock.Now(), rule.settings(key.shadow)) // checked before
		default:
			b.drop(key, kept)
			b.replaced.noteReplaced(key, clock.Now())
		}
		return true
	})
}
