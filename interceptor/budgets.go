// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules. A balance is made when an entry first needs it.
type budgets struct {
	given map[string]func(target string) budget.Budget // by name, from WithBudget; fixed after New

	table table[budgetKey, *balance]
	spent table[budgetKey, *balance] // those that have left it though they weren't full: they come back as they were

	mu       sync.Mutex            // guards changes of both, and all below
	current  map[string]budgetRule // of the policy file, by name; "" is the default budget
	rules    map[string]budgetRule // the same, and the last ones of names that the file omits now
	replaced replacedBalances      // by the last reloads
	counts   budgetCounts          // of all balances, also of those that have left
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

// otherService replaces the names of services that only the application's own callers choose, as in a proxy: their
// number is unbounded.
const otherService = "other"

// serviceOf returns the service whose balance pays for a call with scope SERVICE: the call's own, if the policy, generated
// code or a descriptor names it.
func (r *Retrier) serviceOf(e *entry) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(e.name, "/"), "/")
	named, _, _ := strings.Cut(strings.TrimPrefix(e.policy.Name(), "/"), "/")
	if named == service || e.static || r.described(service) {
		return service
	}
	return otherService
}

// find returns the balance that pays for a user's calls by policies that name a budget. It makes it, if there is none; full says that
// another one has left for it. A budget of the program is made without the lock, since that is user code.
func (b *budgets) find(name string, u budgetUser) (found *balance, full bool) {
	budgetOf := b.given[name]
	if budgetOf == nil {
		return b.findOfFile(name, u)
	}
	key := budgetKey{name: name, source: budgetOfOption, budgetUser: budgetUser{target: u.target}}
	found, full = b.locate(key)
	if found != nil {
		return found, full
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
	found, full = b.bring(key)
	if found != nil {
		return found, full
	}
	fresh, _ := budget.New(rule.config) // its settings were checked
	now := time.Now()
	if kept, ok := fresh.(reloadable); ok && b.replaced.before(key, clock.At(now)) {
		kept.Limit(now, 0)
	}
	return b.add(key, fresh)
}

// locate is bring with the lock.
func (b *budgets) locate(key budgetKey) (found *balance, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bring(key)
}

// bring returns the balance with a key, from the spent ones if it is there; nil if there is none. b.mu must be held.
func (b *budgets) bring(key budgetKey) (found *balance, full bool) {
	found = b.table.find(key)
	if found != nil {
		return found, false
	}
	found = b.spent.find(key)
	if found == nil {
		return nil, false
	}
	b.spent.remove(key)
	return found, b.put(key, found)
}

// add adds a new balance, unless there is one. b.mu must be held.
func (b *budgets) add(key budgetKey, made budget.Budget) (added *balance, full bool) {
	found, full := b.bring(key)
	if found != nil {
		return found, full
	}
	added = &balance{of: b, budget: made}
	if key.source == budgetOfPolicies {
		added.ofFile, _ = made.(reloadable)
	}
	added.counted, added.counts = b.counts.place(key)
	return added, b.put(key, added)
}

// put puts a balance into the table, and reports whether another one has left for it. b.mu must be held.
func (b *budgets) put(key budgetKey, added *balance) (full bool) {
	added.left.Store(false)
	_, oldKey, old := b.table.insert(key, added)
	if old == nil {
		return false
	}
	old.left.Store(true)
	if old.full(time.Now()) {
		b.counts.free(old)
		return true
	}
	_, _, forgotten := b.spent.insert(oldKey, old)
	if forgotten != nil {
		b.counts.free(forgotten)
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
	kept.left.Store(true)
	b.table.remove(key)
	b.spent.remove(key)
	b.counts.free(kept)
}

// each returns all balances.
func (b *budgets) each() iter.Seq2[budgetKey, *balance] {
	return func(yield func(budgetKey, *balance) bool) {
		for _, t := range [...]*table[budgetKey, *balance]{&b.table, &b.spent} {
			for key, kept := range t.all() {
				if !yield(key, kept) {
					return
				}
			}
		}
	}
}

// reload gives balances the settings of the policy file's new rules, if they have changed. before are the old ones, or nil. It drops the
// balance of a budget whose kind or scope has changed; its replacements start empty.
// If the file omits a budget, its balance stays in case the budget comes back, unless another budget pays for its policies.
func (b *budgets) reload(before, after *rules) {
	rules := after.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = rules
	if before != nil {
		moves, paid := movesOf(before, after)
		b.carryOver(moves, paid, rules)
	}
	changed := map[string]budgetRule{} // the old rules
	for name, rule := range rules {
		before, known := b.rules[name]
		if known && before != rule {
			changed[name] = before
		}
		b.rules[name] = rule
	}
	for key, kept := range b.each() {
		rule := rules[key.name]
		before, ok := changed[key.name]
		switch {
		case !ok || before.config.Kind() != key.kind: // it has not changed, or is of WithBudget
		case before.alike(rule):
			_ = kept.ofFile.Reload(time.Now(), rule.config) // checked before
		default:
			b.drop(key, kept)
			b.replaced.noteReplaced(key, clock.Now())
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

// drainTime is how long after a change replacement balances start empty. Callers that are idle for longer call so rarely that a
// full balance does no harm.
const drainTime = time.Minute

// replacedBalances are those that reloads have dropped because the kind or scope of their budgets changed. Their
// replacements start empty, so that a reload doesn't refill budgets.
type replacedBalances struct {
	byName map[string]*replacement
}

// replacement has the users of the dropped balances of one name.
type replacement struct {
	at      time.Duration // of the last reload that dropped one
	users   map[budgetUser]bool
	targets map[string]bool // theirs
}

// noteReplaced records that a balance is dropped now.
func (r *replacedBalances) noteReplaced(key budgetKey, now time.Duration) {
	r.dropOld(now)
	of := r.byName[key.name]
	if of == nil {
		of = &replacement{users: map[budgetUser]bool{}, targets: map[string]bool{}}
		if r.byName == nil {
			r.byName = map[string]*replacement{}
		}
		r.byName[key.name] = of
	}
	of.at = now
	of.users[key.budgetUser] = true
	of.targets[key.target] = true
}

// noteMoved records that the policies whose balances have one name get those of another: these begin empty as well.
func (r *replacedBalances) noteMoved(from, to string, now time.Duration) {
	r.dropOld(now)
	if of := r.byName[from]; of != nil {
		for user := range of.users {
			r.noteReplaced(budgetKey{name: to, budgetUser: user}, now)
		}
	}
}

// before reports whether a reload has recently dropped a balance of calls that share the one with this key.
func (r *replacedBalances) before(key budgetKey, now time.Duration) bool {
	of := r.byName[key.name]
	if of == nil {
		return false
	}
	r.dropOld(now)
	switch {
	case now-of.at > drainTime:
		return false
	case of.users[budgetUser{}], of.users[budgetUser{target: key.target}], of.users[key.budgetUser]:
		return true
	case key.target == "":
		return len(of.targets) > 0
	default:
		return key.service == "" && of.targets[key.target]
	}
}

// dropOld drops replacements older than drainTime.
func (r *replacedBalances) dropOld(now time.Duration) {
	for name, of := range r.byName {
		if now-of.at > drainTime {
			delete(r.byName, name)
		}
	}
}
