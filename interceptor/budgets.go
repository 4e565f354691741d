// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules. A balance is made when an entry first needs it.
type budgets struct {
	given map[string]func(target string) budget.Budget // by name, from WithBudget; fixed after New

	generation *atomic.Uint64 // the Retrier's: it advances when balances leave the table

	table table[budgetKey, *balance]

	mu      sync.Mutex            // guards changes of the table, and all below
	current map[string]budgetRule // of the policy file, by name; "" is the default budget
	rules   map[string]budgetRule // the same, and the last ones of names that the file omits now
	counts  budgetCounts          // of all balances, also of those that have left
}

// budgetKey says which calls share a balance.
type budgetKey struct {
	name, kind string
	source     string
	budgetUser
}

// budgetUser has the properties of a call that determine its balance; in a key, "" means all targets or services.
type budgetUser struct {
	target, service string
}

// budgetRule has a budget's config, and defines which calls share a balance.
type budgetRule struct {
	config budget.Config
	scope  string
}

// alike reports whether a balance of one budget is valid for the other.
func (b budgetRule) alike(other budgetRule) bool {
	return b.scope == other.scope && b.config.Kind() == other.config.Kind()
}

// budgetFor returns what pays for the calls of an entry: a balance, or [budget.Unlimited]. A policy without retries needs none, unless the
// file throttles: then its successes and failures count too.
func (r *Retrier) budgetFor(of *rules, p *policy.Policy, u budgetUser) budget.Budget {
	if unpaid(of, p) {
		return budget.Unlimited
	}
	b, full := r.budgets.find(p.Budget(), u)
	if full {
		r.warnOnce(&fullTable, "", "", mostKept)
	}
	if b.counted.target == otherTarget {
		r.warnOnce(&manyCounts, "", "", mostCounted)
	}
	return b
}

// unpaid reports whether no budget has to hear of a policy's calls.
func unpaid(of *rules, p *policy.Policy) bool {
	return p.Budget() == "NONE" || p.MaxAttempts() < 2 && !of.throttled
}

// warnOfUnknownBudget warns that a policy names a budget that neither the file nor the program has.
func (r *Retrier) warnOfUnknownBudget(of *rules, p *policy.Policy) {
	name := p.Budget()
	_, declared := of.budgets[name]
	if !unpaid(of, p) && !declared && r.budgets.given[name] == nil {
		r.warnOnce(&unknownBudget, name, name)
	}
}

// serviceOf returns the service whose balance pays for a call with scope SERVICE. If a proxy's callers make up services, the table bounds
// their balances.
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}

// find returns the balance that pays for a user's calls by policies that name a budget. It makes it, if there is none; full says that
// others have left for it. A budget of the program is made without the lock, since that is user code.
func (b *budgets) find(name string, u budgetUser) (found *balance, full bool) {
	budgetOf := b.given[name]
	if budgetOf == nil {
		return b.findOfFile(name, u)
	}
	key := budgetKey{name: name, source: budgetOfOption, budgetUser: budgetUser{target: u.target}}
	found = b.table.find(key)
	if found != nil {
		return found, false
	}
	made := budgetOf(u.target)
	if made == nil {
		made = empty{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(key, made)
}

// findOfFile is find for a budget of the policy file. It uses the newest one, since a reload may have replaced that of the call's rules.
func (b *budgets) findOfFile(name string, u budgetUser) (found *balance, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, rule := b.keyOf(name, u)
	found = b.table.find(key)
	if found != nil {
		return found, false
	}
	fresh, _ := budget.New(rule.config) // its settings were checked
	return b.add(key, fresh)
}

// add adds a new balance, unless there is one. b.mu must be held.
func (b *budgets) add(key budgetKey, made budget.Budget) (fresh *balance, full bool) {
	found := b.table.find(key)
	if found != nil {
		return found, false
	}
	fresh = &balance{of: b, budget: made}
	if key.source == budgetOfPolicies {
		fresh.ofFile, _ = made.(reloadable)
	}
	fresh.counted, fresh.counts = b.counts.place(key)
	return fresh, b.put(key, fresh)
}

// put puts a balance into the table, and reports whether others have left for it. b.mu must be held.
func (b *budgets) put(key budgetKey, fresh *balance) (full bool) {
	_, left := b.table.insert(key, fresh)
	if len(left) == 0 {
		return false
	}
	b.generation.Add(1)
	for _, old := range left {
		b.counts.free(old)
	}
	return true
}

// keyOf returns the key of a user's balance, and its rule: that of the default budget, if the file has none with the name. b.mu must be
// held.
func (b *budgets) keyOf(name string, u budgetUser) (budgetKey, budgetRule) {
	rule, known := b.current[name]
	if !known {
		name, rule = "", b.current[""]
	}
	switch rule.scope {
	case "PROCESS":
		u.target, u.service = "", ""
	case "SERVICE":
	default:
		u.service = ""
	}
	return budgetKey{name: name, kind: rule.config.Kind(), source: budgetOfPolicies, budgetUser: u}, rule
}

// drop forgets a balance. Its counts stay. b.mu must be held.
func (b *budgets) drop(key budgetKey, kept *balance) {
	b.table.remove(key)
	b.generation.Add(1)
	b.counts.free(kept)
}

// reload scales balances to the settings of the policy file's new rules, if they have changed. It drops the balances of a budget whose kind
// or scope has changed. If the file omits a budget, its balances stay in case the budget comes back.
func (b *budgets) reload(after *rules) {
	rules := after.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = rules
	changed := map[string]budgetRule{} // the old rules
	for name, rule := range rules {
		before, known := b.rules[name]
		if known && before != rule {
			changed[name] = before
		}
		b.rules[name] = rule
	}
	for key, kept := range b.table.all() {
		rule := rules[key.name]
		before, ok := changed[key.name]
		switch {
		case !ok || before.config.Kind() != key.kind: // it has not changed, or is of WithBudget
		case before.alike(rule):
			_ = kept.ofFile.Reload(time.Now(), rule.config) // checked before
		default:
			b.drop(key, kept)
		}
	}
}

// all returns the balances, and the withdrawals of all that there ever were.
func (b *budgets) all() (list map[budgetKey]*balance, counted map[budgetKey]withdrawals) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counted = make(map[budgetKey]withdrawals, len(b.counts.places))
	for key, c := range b.counts.places {
		counted[key] = c.withdrawals()
	}
	return maps.Collect(b.table.all()), counted
}

// checkBudget returns an error if no balance can have the config.
func checkBudget(name string, c budget.Config) error {
	if _, err := budget.New(c); err != nil {
		return fmt.Errorf("interceptor: budget %q: %w", name, err)
	}
	return nil
}
