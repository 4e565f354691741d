// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
//
// A balance is made when an entry first needs it. If there are too many, those that are equal to new ones are evicted: nothing was
// spent, and no permit is out. If there is none, further targets share one balance of each budget.
type budgets struct {
	given map[string]func(target string) budget.Budget // by name, from WithBudget; fixed after New
	most  int                                          // [mostBalances]

	mu       sync.Mutex            // guards all below
	current  map[string]budgetRule // of the policy file, by name; "" is the default budget
	rules    map[string]budgetRule // the same, and the last ones of names that the file omits now
	table    map[budgetKey]*balance
	replaced replacedBalances // by the last reloads
	counts   budgetCounts     // of all balances, also of dropped ones
	crowded  int64            // the second in which no balance could be evicted
}

// mostBalances bounds the balances of a Retrier.
const mostBalances = 4096

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
	b := r.budgets.find(p.Budget(), u)
	switch {
	case b.shared:
		r.warnOnce(&manyBalances, "", "", r.budgets.most)
	case b.counted.target == otherTarget:
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
func (r *Retrier) serviceOf(p *policy.Policy, s *slot) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(s.name, "/"), "/")
	named, _, _ := strings.Cut(strings.TrimPrefix(p.Name(), "/"), "/")
	if named == service || s.static || r.described(service) {
		return service
	}
	return otherService
}

// find returns the balance that pays for a user's calls by policies that name a budget. It makes it, if there is none. A budget of the
// program is made without the lock, since that is user code.
func (b *budgets) find(name string, u budgetUser) *balance {
	if budgetOf := b.given[name]; budgetOf != nil {
		key := budgetKey{name: name, source: budgetOfOption, budgetUser: budgetUser{target: u.target}}
		if found := b.load(key); found != nil {
			return found
		}
		made := budgetOf(u.target)
		if made == nil {
			made = empty{}
		}
		return b.add(key, name, u, made)
	}
	return b.findOfFile(name, u)
}

func (b *budgets) load(key budgetKey) *balance {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table[key]
}

func (b *budgets) add(key budgetKey, name string, u budgetUser, made budget.Budget) *balance {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.insert(key, name, u, func() budget.Budget { return made })
}

// findOfFile is find for a budget of the policy file. It uses the newest one, since a reload may have replaced that of the call's rules.
func (b *budgets) findOfFile(name string, u budgetUser) *balance {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, rule := b.keyOf(name, u)
	return b.insert(key, name, u, func() budget.Budget {
		fresh, _ := budget.New(rule.config) // its settings were checked
		now := time.Now()
		if kept, ok := fresh.(reloadable); ok && b.replaced.before(key, clock.At(now)) {
			kept.Limit(now, 0)
		}
		return fresh
	})
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

// insert returns the balance with a key. If there is none, it adds one, or if there is no room, returns that which all further targets
// share. b.mu must be held.
func (b *budgets) insert(key budgetKey, name string, u budgetUser, newBudget func() budget.Budget) *balance {
	if found := b.table[key]; found != nil {
		return found
	}
	full := len(b.table) >= b.most && !b.makeRoom(clock.Now())
	if found := b.table[key]; found != nil { // made while makeRoom had no lock
		return found
	}
	if full {
		key.target, key.service = otherTarget, ""
		if shared := b.table[key]; shared != nil {
			return shared
		}
	}
	added := &balance{of: b, name: name, user: u, shared: full, budget: newBudget()}
	if key.source == budgetOfPolicies {
		added.ofFile, _ = added.budget.(reloadable)
	}
	b.addBalance(key, added)
	return added
}

// addBalance adds a balance to the table. b.mu must be held.
func (b *budgets) addBalance(key budgetKey, added *balance) {
	added.counted, added.counts = b.counts.place(key)
	if b.table == nil {
		b.table = map[budgetKey]*balance{}
	}
	b.table[key] = added
}

// makeRoom evicts all balances that are equal to new ones. If there is none, it looks again in the next second. b.mu must be held; it is
// released while budgets of the program are read, since that is user code.
func (b *budgets) makeRoom(now time.Duration) (made bool) {
	if b.crowded == second(now)+1 {
		return false
	}
	unused := map[budgetKey]int{} // how often a permit was asked for
	ofProgram := map[budgetKey]*balance{}
	look := func(key budgetKey, kept *balance) {
		if asked, is := kept.unused(now); is {
			unused[key] = asked
		}
	}
	for key, kept := range b.table {
		switch {
		case kept.shared, b.replaced.before(key, now):
		case kept.ofFile == nil:
			ofProgram[key] = kept
		default:
			look(key, kept)
		}
	}
	b.unlocked(func() {
		for key, kept := range ofProgram {
			look(key, kept)
		}
	})
	for key, asked := range unused {
		if kept := b.table[key]; kept != nil && kept.evict(asked) {
			b.drop(key, kept)
			made = true
		}
	}
	if !made {
		b.crowded = second(now) + 1
	}
	return made
}

// unlocked runs f without the lock, which must be held, and takes it again even if f panics.
func (b *budgets) unlocked(f func()) {
	b.mu.Unlock()
	defer b.mu.Lock()
	f()
}

// drop removes a balance from the table. Its counts stay. b.mu must be held.
func (b *budgets) drop(key budgetKey, kept *balance) {
	delete(b.table, key)
	b.counts.free(kept)
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
	for key, kept := range b.table {
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
	return maps.Clone(b.table), counted
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
