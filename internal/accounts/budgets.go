// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package accounts has what the calls of a Retrier share: balances of budgets, their counts, and the bounded table that holds them. It knows
// no gRPC.
package accounts

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// Budgets are the balances of a Retrier. They outlive its rules. A balance is made when it is first needed.
// Call Reload first: it sets the rules.
type Budgets struct {
	Given map[string]func(target string) budget.Budget // by name, of the program; fixed before the first call

	Generation *atomic.Uint64 // advances when balances leave the table

	Table Table[Key, *Balance]

	mu      sync.Mutex      // guards changes of the table, and all below
	current map[string]Rule // of the policy file, by name; "" is the default budget
	rules   map[string]Rule // current, and the last rules of budgets that the file now omits
	counts  budgetCounts    // of all balances, also of those that have left
}

// The sources of budgets.
const (
	ofPolicies = "policies" // the policy file or set, or the default budget
	ofOption   = "option"   // a function of the program
)

// Key says which calls share a balance.
type Key struct {
	Name, Kind string
	source     string
	User
}

// User has the properties of a call that determine its balance; in a key, "" means all targets or services.
type User struct {
	Target, Service string
}

// Rule has a budget's config, and defines which calls share a balance.
type Rule struct {
	Config budget.Config
	Scope  string
}

// alike reports whether a balance of one budget is valid for the other.
func (b Rule) alike(other Rule) bool {
	return b.Scope == other.Scope && b.Config.Kind() == other.Config.Kind()
}

// Find returns the balance that pays for the calls of a user by policies with this budget. If there is none, it makes one; full reports
// whether others have left the table for it. It makes a budget of the program without the lock, since that is user code.
func (b *Budgets) Find(name string, u User) (found *Balance, full bool) {
	budgetOf := b.Given[name]
	if budgetOf == nil {
		return b.findOfFile(name, u)
	}
	key := Key{Name: name, source: ofOption, User: User{Target: u.Target}}
	found = b.Table.Find(key)
	if found != nil {
		return found, false
	}
	made := budgetOf(u.Target)
	if made == nil {
		made = empty{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(key, made)
}

// findOfFile is Find for a budget of the policy file. It uses the newest one, since a reload may have replaced that of the call's rules.
func (b *Budgets) findOfFile(name string, u User) (found *Balance, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, rule := b.keyOf(name, u)
	found = b.Table.Find(key)
	if found != nil {
		return found, false
	}
	fresh, _ := budget.New(rule.Config) // its settings were checked
	return b.add(key, fresh)
}

// add adds a new balance, unless there is one. b.mu must be held.
func (b *Budgets) add(key Key, made budget.Budget) (fresh *Balance, full bool) {
	found := b.Table.Find(key)
	if found != nil {
		return found, false
	}
	fresh = &Balance{of: b, Budget: made}
	if key.source == ofPolicies {
		fresh.ofFile, _ = made.(reloadable)
	}
	fresh.counted, fresh.counts = b.counts.place(key)
	return fresh, b.put(key, fresh)
}

// put puts a balance into the table, and reports whether others have left for it. b.mu must be held.
func (b *Budgets) put(key Key, fresh *Balance) (full bool) {
	_, left := b.Table.Insert(key, fresh)
	if len(left) == 0 {
		return false
	}
	b.Generation.Add(1)
	for _, old := range left {
		b.counts.free(old)
	}
	return true
}

// keyOf returns the key of a user's balance, and its rule. If the file has no budget with the name, they are those of the default budget.
// b.mu must be held.
func (b *Budgets) keyOf(name string, u User) (Key, Rule) {
	rule, known := b.current[name]
	if !known {
		name, rule = "", b.current[""]
	}
	switch rule.Scope {
	case "PROCESS":
		u.Target, u.Service = "", ""
	case "SERVICE":
	default:
		u.Service = ""
	}
	return Key{Name: name, Kind: rule.Config.Kind(), source: ofPolicies, User: u}, rule
}

// drop forgets a balance. Its counts stay. b.mu must be held.
func (b *Budgets) drop(key Key, dropped *Balance) {
	b.Table.remove(key)
	b.Generation.Add(1)
	b.counts.free(dropped)
}

// Reload sets the rules of the policy file, by the names of budgets. It scales the balances of a budget whose settings have changed, and
// drops those of a budget whose kind or scope has changed. If the file omits a budget, its balances stay in case the budget comes back.
func (b *Budgets) Reload(rules map[string]Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = rules
	if b.rules == nil {
		b.rules = map[string]Rule{}
	}
	changed := map[string]Rule{} // the old rules
	for name, rule := range rules {
		before, known := b.rules[name]
		if known && before != rule {
			changed[name] = before
		}
		b.rules[name] = rule
	}
	for key, balance := range b.Table.All() {
		rule := rules[key.Name]
		before, ok := changed[key.Name]
		switch {
		case !ok || before.Config.Kind() != key.Kind: // it has not changed, or is of WithBudget
		case before.alike(rule):
			_ = balance.ofFile.Reload(time.Now(), rule.Config) // checked before
		default:
			b.drop(key, balance)
		}
	}
}

// All returns the balances, and the withdrawals of all that there ever were.
func (b *Budgets) All() (list map[Key]*Balance, counted map[Key]Withdrawals) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counted = make(map[Key]Withdrawals, len(b.counts.places))
	for key, c := range b.counts.places {
		counted[key] = c.withdrawals()
	}
	return maps.Collect(b.Table.All()), counted
}
