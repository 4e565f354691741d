// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given map[string]func(target string) budget.Budget // by name, from WithBudget; fixed after New
	table sync.Map                                     // budgetKey → *keptBalance; changed under Retrier.reloading

	rules    map[string]budgetRule // by name, the newest of the policy file; guarded by Retrier.reloading, as all below
	replaced replacedBalances      // by the last reloads
	counts   budgetCounts          // of all balances, also of dropped ones
	count    int                   // of the table
	most     int                   // [mostBalances]
	crowded  int64                 // the end of the second in which no balance can be evicted
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
	shadow          bool // in mode OBSERVE
}

// findBudget finds or makes the balance for a call. A policy without retries needs none, unless the file throttles: then its successes
// and failures count too.
func (r *Retrier) findBudget(of *rules, p *decision.Policy, u budgetUser, service func(*rules) string) budget.Budget {
	name := p.Budget()
	if name == "NONE" || p.MaxAttempts() < 2 && !of.throttled {
		return budget.Unlimited
	}
	if budgetOf := r.budgets.given[name]; budgetOf != nil && !u.shadow { // we can't make a second one like it
		return r.givenFor(name, u.target, budgetOf)
	}
	if _, known := of.budgets[name]; !known {
		r.warnOnce(&unknownBudget, name, name)
	}
	u.service = service(of)
	key, _ := of.budgetKey(name, u)
	if b := r.budgets.findBalance(key); b != nil {
		return b
	}
	return r.newBudget(name, u, service)
}

// checkBudget returns an error if no balance can have the config.
func (b *budgets) checkBudget(name string, c budget.Config) error {
	if _, err := budget.New(c); err != nil {
		return fmt.Errorf("interceptor: budget %q: %w", name, err)
	}
	return nil
}

// newBudget makes a balance. It uses the newest rules, because a reload may have replaced those of the call.
func (r *Retrier) newBudget(name string, u budgetUser, service func(*rules) string) *keptBalance {
	for {
		of := r.rules.Load()
		user := budgetUser{target: u.target, service: service(of), shadow: u.shadow}
		key, rule := of.budgetKey(name, user)
		successor := func() *keptBalance { return r.newBudget(name, user, func(*rules) string { return user.service }) }
		if b := r.addBudget(of, key, rule.config, successor); b != nil {
			return b
		}
	}
}

// addBudget is newBudget under the lock, or returns nil if there are newer rules. The settings were checked.
func (r *Retrier) addBudget(of *rules, key budgetKey, settings budget.Config, successor func() *keptBalance) *keptBalance {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if r.rules.Load() != of {
		return nil
	}
	if b := r.budgets.findBalance(key); b != nil {
		return b
	}
	return r.budgets.keepBalance(key, func() budget.Budget {
		fresh, _ := budget.New(settings)
		if now := time.Now(); r.budgets.replaced.before(key, clock.At(now)) {
			if kept, ok := fresh.(reloadable); ok { // as all kinds are
				kept.Drain(now)
			}
		}
		return fresh
	}, successor)
}

// givenFor returns a target's budget of WithBudget. newBudget is user code, which runs without a lock.
func (r *Retrier) givenFor(name, target string, newBudget func(string) budget.Budget) *keptBalance {
	key := budgetKey{name: name, source: budgetOfOption, budgetUser: budgetUser{target: target}}
	if b := r.budgets.findBalance(key); b != nil {
		return b
	}
	made := newBudget(target)
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if b := r.budgets.findBalance(key); b != nil { // another call was faster
		return b
	}
	return r.budgets.keepBalance(key, func() budget.Budget {
		if made == nil {
			return empty{}
		}
		return made
	}, func() *keptBalance { return r.givenFor(name, target, newBudget) })
}

// otherService replaces the names of services that only the application's own callers choose, as in a proxy: their
// number is unbounded.
const otherService = "other"

// serviceOf returns the service whose balance pays for a call with scope SERVICE: the call's own, if the policy, generated
// code or a descriptor names it. Without that scope it returns "".
func (r *Retrier) serviceOf(of *rules, p *decision.Policy, s *slot) string {
	if !of.perService {
		return ""
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(s.name, "/"), "/")
	named, _, _ := strings.Cut(strings.TrimPrefix(p.Name(), "/"), "/")
	if named == service || s.static || r.described(service) {
		return service
	}
	return otherService
}

// mostBalances bounds the balances of a Retrier. When there are as many, the least recently used of those goes whose replacement
// would be the same: nothing was spent, and no permit is out. If there is none, all further targets share one balance.
const mostBalances = 4096

// keptBalance is a budget in the table. Calls may hold it for longer than it is there. Once it is evicted, they report to its successor and
// ask that one.
type keptBalance struct {
	budget.Budget

	own     reloadable   // the same; nil for one of WithBudget
	used    atomic.Int64 // the second in which a call last looked it up
	counted budgetKey    // the key under which its withdrawals count
	counts  *counts      // those
	shared  bool         // by all targets for which there was no place

	permits atomic.Int64                // those that are out, and granted times those so far; negative: evicted
	find    func() *keptBalance         // finds or makes the successor
	next    atomic.Pointer[keptBalance] // the successor, once a call has asked for it
}

// reloadable is a budget of package budget.
type reloadable interface {
	budget.Budget
	budget.Stater

	// Reload changes the config. It scales the balance, and never refills it, so it is safe in the middle of an outage. It refuses a
	// config that is out of bounds or of another kind, and then changes nothing.
	Reload(now time.Time, c budget.Config) error
	// Drain sets the balance to zero, for a budget that replaces another one.
	Drain(now time.Time)
	// Fresh reports whether a new budget with the same config would have forgotten nothing but refunds.
	Fresh(now time.Time) bool
}

// empty allows no extra attempt.
type empty struct{}

func (empty) Observe(time.Time, budget.Event) {}

func (empty) Allow(time.Time, budget.Cause) (func(time.Time, budget.End), bool) { return nil, false }

func (empty) State(time.Time) budget.State { return budget.State{} }

// granted is what each permit adds to keptBalance.permits for good, so that evict also sees one that was granted and settled meanwhile.
// 16 million may be out, and 5e11 may be granted.
const granted = 1 << 24

// evicted reports whether another balance has replaced it.
func (k *keptBalance) evicted() bool { return k.permits.Load() < 0 }

// replaced reports whether an entry that was made at a time needs another balance: this one is evicted, or is the shared one, and there
// may be a place for a balance of its own again. That is looked up once a second.
func (k *keptBalance) replaced(made, now time.Duration) bool {
	return k.evicted() || k.shared && second(now) != second(made)
}

// idle reports whether no permit is out.
func (k *keptBalance) idle() bool { return k.permits.Load()%granted == 0 }

// current returns the budget, or the balance that has replaced an evicted one.
func (k *keptBalance) current() budget.Budget {
	if !k.evicted() {
		return k.Budget
	}
	if k.next.Load() == nil {
		k.next.CompareAndSwap(nil, k.find())
	}
	return k.next.Load()
}

// Observe implements [budget.Budget].
func (k *keptBalance) Observe(now time.Time, e budget.Event) { k.current().Observe(now, e) }

// Allow implements [budget.Budget]. It counts the permits.
func (k *keptBalance) Allow(now time.Time, c budget.Cause) (ended func(time.Time, budget.End), ok bool) {
	if !k.hold() {
		return k.current().Allow(now, c)
	}
	defer func() {
		if !ok { // refused, or a user's budget has panicked
			k.permits.Add(-granted - 1)
			k.counts.refused.Add(1)
		}
	}()
	inner, ok := k.Budget.Allow(now, c)
	if !ok {
		return nil, false
	}
	return func(now time.Time, how budget.End) {
		defer k.permits.Add(-1)
		if how != budget.EndUnsent {
			k.counts.granted.Add(1)
		}
		if inner != nil {
			inner(now, how)
		}
	}, true
}

// hold counts a permit, so that the balance is not evicted. It returns false if it is.
func (k *keptBalance) hold() bool {
	if k.permits.Add(granted+1) > 0 {
		return true
	}
	k.permits.Add(-granted - 1)
	return false
}

func (k *keptBalance) touch(now time.Duration) {
	if s := int64(now / time.Second); k.used.Load() != s {
		k.used.Store(s)
	}
}

// full reports whether a new balance would have forgotten nothing but refunds. A user's budget is read, under Retrier.reloading.
func (k *keptBalance) full(now time.Duration) bool {
	if k.own != nil {
		return k.own.Fresh(clock.Time(now))
	}
	b, readable := k.Budget.(budget.Stater)
	if !readable {
		return true
	}
	s := b.State(clock.Time(now))
	return s.Balance >= s.Capacity
}

// evict ends the balance, if it is full and no permit is out, or was granted meanwhile. Then it returns true.
func (k *keptBalance) evict(now time.Duration) bool {
	permits := k.permits.Load()
	return k.idle() && k.full(now) && k.permits.CompareAndSwap(permits, math.MinInt64)
}

// findBalance returns the balance for a key, or nil if there is none.
func (b *budgets) findBalance(key budgetKey) *keptBalance {
	found, _ := b.table.Load(key)
	kept, _ := found.(*keptBalance)
	if kept == nil || kept.evicted() {
		return nil
	}
	kept.touch(clock.Now())
	return kept
}

// keepBalance adds a balance, or returns that which all targets share for which there is no place. newBalance returns a new
// one, find its successor. Retrier.reloading must be held.
func (b *budgets) keepBalance(key budgetKey, newBalance func() budget.Budget, find func() *keptBalance) *keptBalance {
	now := clock.Now()
	full := b.count >= b.most && !b.makeRoom(now)
	if full {
		key.target, key.service = otherTarget, ""
		if shared := b.findBalance(key); shared != nil {
			return shared
		}
	}
	k := &keptBalance{Budget: newBalance(), shared: full, find: find}
	k.counted, k.counts = b.counts.place(key)
	if key.source == budgetOfPolicies {
		k.own, _ = k.Budget.(reloadable)
	}
	k.touch(now)
	b.count++
	b.table.Store(key, k)
	return k
}

// warnOfFullBudgets warns if a balance is not a call's own, or counts as that of other targets.
func (r *Retrier) warnOfFullBudgets(k *keptBalance) {
	if k == nil || k.counted.target != otherTarget {
		return
	}
	r.warnOnce(&manyCounts, "", "", mostCounted)
	if k.shared {
		r.warnOnce(&manyBalances, "", "", r.budgets.most)
	}
}

// makeRoom evicts the balances that were last used in the same second as the least recently used one. If it finds none, it looks
// again a second later. Retrier.reloading must be held.
func (b *budgets) makeRoom(now time.Duration) bool {
	second := int64(now / time.Second)
	if b.crowded == second+1 {
		return false
	}
	oldest := second
	b.eachBalance(func(key budgetKey, k *keptBalance) {
		if used := k.used.Load(); used < oldest && k.idle() && b.evictable(key, now) && k.full(now) {
			oldest = used
		}
	})
	before := b.count
	b.eachBalance(func(key budgetKey, k *keptBalance) {
		if oldest < second && k.used.Load() == oldest && b.evictable(key, now) && k.evict(now) {
			b.drop(key, k)
		}
	})
	if b.count == before {
		b.crowded = second + 1
	}
	return b.count < before
}

// evictable reports whether a new balance would not start empty, and the balance is not the shared one.
func (b *budgets) evictable(key budgetKey, now time.Duration) bool {
	return key.target != otherTarget && !b.replaced.before(key, now)
}

func (b *budgets) eachBalance(do func(budgetKey, *keptBalance)) {
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*keptBalance)
		do(key, kept)
		return true
	})
}

// drop removes a balance from the table. Its counts stay. Retrier.reloading must be held.
func (b *budgets) drop(key budgetKey, kept *keptBalance) {
	b.table.Delete(key)
	b.counts.free(kept)
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
	b.eachBalance(func(key budgetKey, kept *keptBalance) {
		rule := rules[key.name]
		switch before, ok := changed[key.name]; {
		case !ok || before.config.Kind() != key.kind: // it has not changed, or is of WithBudget
		case before.alike(rule):
			_ = kept.own.Reload(time.Now(), rule.config) // checked before
		default:
			b.drop(key, kept)
			b.replaced.noteReplaced(key, clock.Now())
		}
	})
}

// drainTime is how long after a change replacement balances start empty. Callers that are idle for longer call so rarely that a full balance
// does no harm.
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
	targets map[budgetUser]bool // the same, without their services
}

// noteReplaced records that a balance is dropped now.
func (r *replacedBalances) noteReplaced(key budgetKey, now time.Duration) {
	r.dropOld(now)
	of := r.byName[key.name]
	if of == nil {
		of = &replacement{users: map[budgetUser]bool{}, targets: map[budgetUser]bool{}}
		if r.byName == nil {
			r.byName = map[string]*replacement{}
		}
		r.byName[key.name] = of
	}
	of.at = now
	of.users[key.budgetUser] = true
	of.targets[budgetUser{target: key.target, shadow: key.shadow}] = true
}

// before reports whether a reload has recently dropped a balance of calls that share the one with this key.
func (r *replacedBalances) before(key budgetKey, now time.Duration) bool {
	of := r.byName[key.name]
	if of == nil {
		return false
	}
	r.dropOld(now)
	target := budgetUser{target: key.target, shadow: key.shadow}
	switch {
	case now-of.at > drainTime:
		return false
	case of.users[budgetUser{shadow: key.shadow}], of.users[target], of.users[key.budgetUser]:
		return true
	case key.target == "":
		return of.sharedWith(key.shadow)
	default:
		return key.service == "" && of.targets[target]
	}
}

// sharedWith reports whether calls have used any of them: those in mode OBSERVE if shadow, otherwise the others.
func (r *replacement) sharedWith(shadow bool) bool {
	for u := range r.targets {
		if u.shadow == shadow {
			return true
		}
	}
	return false
}

// dropOld drops replacements older than drainTime.
func (r *replacedBalances) dropOld(now time.Duration) {
	for name, of := range r.byName {
		if now-of.at > drainTime {
			delete(r.byName, name)
		}
	}
}

// countBalances returns the withdrawals of all balances, including dropped ones.
func (r *Retrier) countBalances() map[budgetKey]withdrawals {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	read := make(map[budgetKey]withdrawals, len(r.budgets.counts.places))
	for key, c := range r.budgets.counts.places {
		read[key] = c.withdrawals()
	}
	return read
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
func (c *budgetCounts) free(b *keptBalance) {
	if b.idle() && b.counts.withdrawals() == (withdrawals{}) && b.counted.target != otherTarget {
		delete(c.places, b.counted)
	}
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
