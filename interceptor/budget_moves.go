// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// budgetMove is what a reload does that gives policies another budget: that begins no fuller than the one that paid for them before, or ten
// new names in an outage would be ten full budgets.
type budgetMove struct{ from, to string } // names of the policy file; "" is the default budget

// movesOf returns the budget moves of a reload, and the budgets that paid before it.
func movesOf(before, after *rules) (moves []budgetMove, paid map[string]bool) {
	paid = map[string]bool{}
	names := map[string]bool{}
	for _, set := range [...]*policy.Set{before.set.Set, after.set.Set} {
		for _, p := range set.Policies() {
			names[p.Name()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, fresh := before.set.Lookup(name), after.set.Lookup(name)
		if old == nil || unpaid(before, old) {
			continue
		}
		m := budgetMove{from: before.budgetOf(old)}
		paid[m.from] = true
		if fresh == nil || unpaid(after, fresh) {
			continue
		}
		m.to = after.budgetOf(fresh)
		if m.from != m.to && !slices.Contains(moves, m) {
			moves = append(moves, m)
		}
	}
	return moves, paid
}

// budgetOf returns the name of the budget that pays for a policy: that which it names, or the default budget.
func (r *rules) budgetOf(p *policy.Policy) string {
	if _, declared := r.budgets[p.Budget()]; declared {
		return p.Budget()
	}
	return ""
}

// carryOver makes the balances of moves. rules are the new ones, and b.rules still the old ones. b.mu must be held.
func (b *budgets) carryOver(moves []budgetMove, paid map[string]bool, rules map[string]budgetRule) {
	for _, m := range moves {
		if b.given[m.from] != nil || b.given[m.to] != nil { // the program answers for its own
			continue
		}
		b.replaced.noteMoved(m.from, m.to, clock.Now())
		for _, key := range b.keysOf(m.from) {
			b.carry(key, m, paid[m.to], rules)
		}
	}
}

// keysOf returns the keys of a budget's balances.
func (b *budgets) keysOf(name string) (keys []budgetKey) {
	for key := range b.each() {
		if key.name == name && key.source == budgetOfPolicies {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y budgetKey) int {
		return strings.Compare(x.target+"\n"+x.service, y.target+"\n"+y.service)
	})
	return keys
}

// carry makes the balance that pays from now on in the place of the one with a key. A balance that has paid for other policies before stays
// as it is.
func (b *budgets) carry(key budgetKey, m budgetMove, hasPaid bool, rules map[string]budgetRule) {
	now, old, rule := time.Now(), b.lookUp(key), rules[m.to]
	to := key
	to.name = m.to
	if !b.rules[m.from].alike(rule) {
		b.replaced.noteReplaced(to, clock.At(now)) // those that are made begin empty
		if hasPaid {
			return
		}
		for _, unused := range b.keysOf(m.to) {
			b.drop(unused, b.lookUp(unused))
		}
		return
	}
	_, declared := rules[m.from]
	found := b.lookUp(to)
	switch {
	case found != nil && hasPaid:
	case found != nil:
		found.ofFile.Limit(now, old.ofFile.Filled(now))
	case !declared: // only the name has changed
		_ = old.ofFile.Reload(now, rule.config) // checked before
		b.drop(key, old)
		b.add(to, old.budget)
	default:
		fresh, _ := budget.New(rule.config) // checked before
		made, _ := fresh.(reloadable)
		made.Limit(now, old.ofFile.Filled(now))
		b.add(to, made)
	}
}

// lookUp returns the balance with a key, wherever it is; nil if there is none.
func (b *budgets) lookUp(key budgetKey) *balance { return cmp.Or(b.table.find(key), b.spent.find(key)) }
