// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strings"
	"sync"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/frombudget"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given     map[string]balance.Budget                    // by name, from WithBudget; fixed after New
	perTarget map[string]func(target string) budget.Budget // by name, from WithBudgetPerTarget; fixed after New
	table     sync.Map                                     // budgetKey → *keptBalance; changed under Retrier.reloading

	rules    map[string]budgetRule // by name, the newest of the policy file; guarded by Retrier.reloading, as all below
	replaced replacedBalances      // by the last reloads
	counts   budgetCounts          // of dropped balances
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

// findBudget finds or makes the balance for a call. A policy without
// retries needs none, unless the file throttles: then its successes and failures count too.
func (r *Retrier) findBudget(of *rules, p *decision.Policy, u budgetUser, service func(*rules) string) balance.Budget {
	name := p.Budget()
	if name == policy.NoBudget || p.MaxAttempts() < 2 && !of.throttled {
		return balance.Unlimited
	}
	if own := r.budgets.given[name]; own != nil && !u.shadow { // we can't make a second one like it
		return own
	}
	if newBudget := r.budgets.perTarget[name]; newBudget != nil && !u.shadow {
		return r.givenFor(name, u.target, newBudget)
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
func (b *budgets) checkBudget(name string, c balance.Config) error {
	if err := balance.Check(c); err != nil {
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

// addBudget is newBudget under the lock, or returns nil if there are newer rules. It runs no user code. The settings were checked.
func (r *Retrier) addBudget(of *rules, key budgetKey, settings balance.Config, successor func() *keptBalance) *keptBalance {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if r.rules.Load() != of {
		return nil
	}
	if b := r.budgets.findBalance(key); b != nil {
		return b
	}
	return r.budgets.keepBalance(key, func() balance.Budget {
		fresh, _ := balance.New(settings)
		if now := clock.Now(); r.budgets.replaced.before(key, now) {
			fresh.Drain(now)
		}
		return fresh
	}, successor)
}

// givenFor returns a target's budget of WithBudgetPerTarget. newBudget is user code, which runs without a lock.
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
	return r.budgets.keepBalance(key, func() balance.Budget {
		if made == nil {
			return balance.Empty()
		}
		return frombudget.Budget(made)
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
