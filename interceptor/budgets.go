// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given map[string]budget.Budget // by name, from WithBudget; fixed after New
	table sync.Map                 // budgetKey → budget.Reloadable; changed under Retrier.reloading

	rules   map[string]budgetRule // by name, the newest of the policy file; guarded by Retrier.reloading
	drained map[string]bool       // names whose new balances begin with nothing; the same
}

// budgetKey says which calls share a balance.
type budgetKey struct {
	name, kind      string
	target, service string // "" if all do
}

// budgetFor returns the budget that pays for a call.
func (r *Retrier) budgetFor(of *rules, p *policy.Policy, cc *grpc.ClientConn, method string) budget.Budget {
	given, cached := target(cc), of.cachedBudget(p)
	if b := cached.load(given); b != nil {
		return b
	}
	b := r.findBudget(of, p, r.targets.canonical(cc), method)
	if of.budgets[p.Budget()].scope != policy.ScopeService {
		cached.store(given, b)
	}
	return b
}

// findBudget finds or makes the balance for a call; it stays for as long as the Retrier. A policy without
// retries needs none, unless the file throttles: then its successes and failures count too.
func (r *Retrier) findBudget(of *rules, p *policy.Policy, target, method string) budget.Budget {
	name := p.Budget()
	if name == policy.NoBudget || p.MaxAttempts() < 2 && !of.throttled {
		return budget.Unlimited
	}
	if own := r.budgets.given[name]; own != nil {
		return own
	}
	if _, known := of.budgets[name]; !known {
		r.warnUnknownBudget(name)
	}
	key, _ := of.budgetKey(name, target, method)
	if b := r.budgets.find(key); b != nil && of.settingsHold(key) {
		return b
	}
	return r.newBudget(of, name, target, method)
}

// newBudget makes a balance, or gives one that is there the settings that a service config has delivered.
// It follows the newest rules: a reload may have come since the call read its own.
func (r *Retrier) newBudget(of *rules, name, target, method string) budget.Budget {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	of = of.newest(r.rules.Load())
	key, rule := of.budgetKey(name, target, method)
	b := r.budgets.find(key)
	switch {
	case b == nil:
		var err error
		if b, err = budget.New(rule.config); err != nil {
			return budget.Empty // it has been checked
		}
		if r.budgets.drained[key.name] || of.delivered() && r.budgets.ofAnotherKind(key) {
			b.Drain(budget.Now())
		}
		r.budgets.table.Store(key, b)
	case of.delivered():
		_ = b.Reload(budget.Now(), rule.config) // it has been checked
	}
	of.applied.Store(key, true)
	return b
}

// find returns the balance for a key; nil if there is none.
func (b *budgets) find(key budgetKey) budget.Reloadable {
	found, _ := b.table.Load(key)
	held, _ := found.(budget.Reloadable)
	return held
}

// ofAnotherKind reports whether there is a balance of another kind for the same calls.
func (b *budgets) ofAnotherKind(key budgetKey) bool {
	own := key.kind
	for _, key.kind = range budget.Names() {
		if key.kind != own && b.find(key) != nil {
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
		held, _ := v.(budget.Reloadable)
		rule := rules[key.name]
		switch before, ok := changed[key.name]; {
		case !ok || before.config.Name() != key.kind: // it is as it was, or of a service config
		case before.alike(rule):
			_ = held.Reload(budget.Now(), rule.config) // it has been checked
		default:
			b.table.Delete(key)
		}
		return true
	})
}

// serviceOf cuts "/service/method" to "service".
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}
