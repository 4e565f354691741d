// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"weak"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given  map[string]budget.Budget // by name, from WithBudget; fixed after New
	leases leases
	table  sync.Map // budgetKey → *balance; changed under Retrier.reloading

	rules   map[string]budgetRule // by name, the newest of the policy file; guarded by Retrier.reloading
	drained map[string]bool       // names whose new balances begin with nothing; the same
	count   int                   // of the table; the same
	sweepAt int                   // the count at which the table is swept; the same
}

// balance is a budget in the table. It never changes; another one takes its place.
//
//	new ──► in use ──── a sweep finds it fresh ────► idle ──── a sweep finds that nobody holds it, still fresh ────► dropped
//	          ▲                                       │
//	          └──────────────── a call ───────────────┘
type balance struct {
	budget budget.Reloadable
	used   *heldBudget              // nil while it is idle
	held   weak.Pointer[heldBudget] // by calls, or used
}

// heldBudget is a budget as calls hold it, from their start to their end. Counting them would have all calls write to
// one place. The garbage collector knows without that when nobody holds it any more.
type heldBudget struct{ budget.Reloadable }

// Confirm implements [budget.Confirmer], which the balance may be.
func (h *heldBudget) Confirm(now time.Duration, p budget.Permit) bool {
	c, ok := h.Reloadable.(budget.Confirmer)
	return !ok || c.Confirm(now, p)
}

// budgetKey says which calls share a balance.
type budgetKey struct {
	name, kind      string
	target, service string // "" if all do
	shadow          bool   // calls in mode OBSERVE share it
}

// budgetFor returns the budget that pays for a call. Calls in mode OBSERVE have balances of their own, and those in
// mode OFF have none: they neither earn nor spend.
func (r *Retrier) budgetFor(of *rules, p *policy.Policy, cc *grpc.ClientConn, method string, mode policy.Mode) budget.Budget {
	if mode == policy.ModeOff {
		return budget.Unlimited
	}
	shadow := mode == policy.ModeObserve
	given, cached := target(cc), of.cachedBudget(p, shadow)
	if b := cached.load(given); b != nil {
		return b
	}
	b := r.findBudget(of, p, r.targets.canonical(cc), method, shadow)
	if of.budgets[p.Budget()].scope != policy.ScopeService {
		cached.store(given, b)
	}
	return b
}

// findBudget finds or makes the balance for a call. A policy without
// retries needs none, unless the file throttles: then its successes and failures count too.
func (r *Retrier) findBudget(of *rules, p *policy.Policy, target, method string, shadow bool) budget.Budget {
	name := p.Budget()
	if name == policy.NoBudget || p.MaxAttempts() < 2 && !of.throttled {
		return budget.Unlimited
	}
	if own := r.budgets.given[name]; own != nil && !shadow { // nobody can make another one like it
		return own
	}
	if _, known := of.budgets[name]; !known {
		r.warnUnknownBudget(name)
	}
	key, _ := of.budgetKey(name, target, method, shadow)
	if b := r.budgets.find(key); b != nil && of.settingsHold(key) {
		return b
	}
	return r.newBudget(of, name, target, method, shadow)
}

// make makes a balance.
func (b *budgets) make(c budget.Config) (budget.Reloadable, error) {
	if ratio, ok := c.(budget.RatioConfig); ok && b.leases.fleet != nil {
		return budget.NewFleetRatio(ratio, &b.leases)
	}
	return budget.New(c)
}

// check refuses a config that no balance can be made of.
func (b *budgets) check(name string, c budget.Config) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("interceptor: budget %q: %w", name, err)
	}
	pool := poolOf(c)
	switch {
	case pool.Name == "" || b.given[name] != nil:
		return nil
	case b.leases.fleet == nil:
		return fmt.Errorf("interceptor: budget %q: its reserve is leased from the pool %q, and nothing says where that is; "+
			"add interceptor.WithFleet(redisbudget.New(client))", name, pool.Name)
	}
	if err := b.leases.Check(pool); err != nil {
		return fmt.Errorf("interceptor: budget %q: pool %q: %w", name, pool.Name, err)
	}
	return nil
}

// lease leases the pools that budgets name. No lock may be held.
func (b *budgets) lease(rules map[string]budgetRule) error {
	for name, rule := range rules {
		if b.given[name] != nil {
			continue
		}
		if err := b.leases.take(rule.config); err != nil {
			return fmt.Errorf("interceptor: budget %q: %w", name, err)
		}
	}
	return nil
}

// newBudget makes a balance, or gives one that is there the settings that a service config has delivered.
// It follows the newest rules: a reload may have come since the call read its own.
func (r *Retrier) newBudget(of *rules, name, target, method string, shadow bool) budget.Budget {
	for {
		of = of.newest(r.rules.Load())
		key, rule := of.budgetKey(name, target, method, shadow)
		settings := rule.settings(shadow)
		var b budget.Budget
		var err error
		if of.delivered() { // the pools of a file are leased when it is loaded
			err = r.budgets.leases.take(settings)
		}
		if err == nil {
			b, err = r.addBudget(of, key, settings)
		}
		switch {
		case errors.Is(err, errReloaded):
		case err != nil: // of a service config: those of a file have been checked
			r.warnBudget(name, err)
			return budget.Empty
		default:
			return b
		}
	}
}

// errReloaded says that there are newer rules.
var errReloaded = errors.New("interceptor: there are newer rules")

// addBudget does under the lock what newBudget says. Nothing of the user's runs in it. The error is errReloaded, or that
// no balance can have these settings.
func (r *Retrier) addBudget(of *rules, key budgetKey, settings budget.Config) (budget.Budget, error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if of.newest(r.rules.Load()) != of {
		return nil, errReloaded
	}
	b := r.budgets.hold(key)
	switch {
	case b == nil:
		fresh, err := r.budgets.make(settings)
		if err != nil {
			return nil, err
		}
		if r.budgets.drained[key.name] || of.delivered() && r.budgets.ofAnotherKind(key) {
			fresh.Drain(budget.Now())
		}
		b = r.budgets.add(key, fresh)
	case of.delivered():
		if err := b.Reload(budget.Now(), settings); err != nil { // it has no fleet
			return nil, err
		}
	}
	if of.delivered() {
		of.applied.Store(key, true)
	}
	return b, nil
}

// find returns the balance for a key; nil if there is none, or it is idle.
func (b *budgets) find(key budgetKey) *heldBudget {
	if found, ok := b.load(key); ok {
		return found.used
	}
	return nil
}

func (b *budgets) load(key budgetKey) (*balance, bool) {
	found, _ := b.table.Load(key)
	kept, ok := found.(*balance)
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
		return b.store(key, held)
	default:
		return found.used
	}
}

func (b *budgets) store(key budgetKey, held *heldBudget) *heldBudget {
	b.table.Store(key, &balance{held.Reloadable, held, weak.Make(held)})
	return held
}

// add adds a balance. It requires Retrier.reloading.
func (b *budgets) add(key budgetKey, own budget.Reloadable) *heldBudget {
	if b.count >= max(b.sweepAt, leastSwept) {
		used := b.sweep(budget.Now())
		b.sweepAt = b.count + max(used, leastSwept)
	}
	b.count++
	return b.store(key, &heldBudget{own})
}

// leastSwept is the number of balances below which none is dropped.
const leastSwept = 100

// sweep drops the balances that nobody misses, as of targets that are gone: no call holds them, and a fresh one could
// not be told from them. It returns how many stay in use. It requires Retrier.reloading.
func (b *budgets) sweep(now time.Duration) (used int) {
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*balance)
		switch {
		case b.drained[key.name] || !kept.budget.Fresh(now): // one that begins with nothing is not fresh
			used++
		case kept.used != nil:
			b.table.Store(key, &balance{kept.budget, nil, kept.held})
		case kept.held.Value() == nil:
			b.drop(key)
		}
		return true
	})
	return used
}

func (b *budgets) drop(key budgetKey) {
	b.table.Delete(key)
	b.count--
}

// ofAnotherKind reports whether there is a balance of another kind for the same calls.
func (b *budgets) ofAnotherKind(key budgetKey) bool {
	own := key.kind
	for _, key.kind = range budget.Names() {
		if _, found := b.load(key); found && key.kind != own {
			return true
		}
	}
	return false
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
			b.drained[name] = b.drained[name] || !before.alike(rule)
		}
		b.rules[name] = rule
	}
	b.table.Range(func(k, v any) bool {
		key, _ := k.(budgetKey)
		kept, _ := v.(*balance)
		rule := rules[key.name]
		switch before, ok := changed[key.name]; {
		case !ok || before.config.Name() != key.kind: // it is as it was, or of a service config
		case before.alike(rule):
			_ = kept.budget.Reload(budget.Now(), rule.settings(key.shadow)) // it has been checked
		default:
			b.drop(key)
		}
		return true
	})
}

// serviceOf cuts "/service/method" to "service".
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}
