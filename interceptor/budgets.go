// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/lease"
	"github.com/stagger-go/stagger/policy"
)

// budgets are the balances of a Retrier. They outlive its rules.
type budgets struct {
	given map[string]balance.Budget // by name, from WithBudget; fixed after New
	pools *lease.Pools              // nil without a fleet
	table sync.Map                  // budgetKey → *keptBalance; changed under Retrier.reloading

	rules    map[string]budgetRule // by name, the newest of the policy file; guarded by Retrier.reloading, as all below
	replaced replacedBalances      // by the last reloads
	counts   budgetCounts          // of dropped balances
	count    int                   // of the table
	sweepAt  int                   // the count at which the table is swept
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

// budgetFor returns the budget that pays for a call. Calls in mode OBSERVE have separate balances. Calls in
// mode OFF have none: they neither earn nor spend.
func (r *Retrier) budgetFor(of *rules, p *decision.Policy, cc *grpc.ClientConn, method string, o *callOptions) balance.Budget {
	if o.mode == policy.ModeOff {
		return balance.Unlimited
	}
	shadow := o.mode == policy.ModeObserve
	given, cached := target(cc), of.cachedBudget(p, shadow)
	if b := cached.load(given); b != nil {
		return b
	}
	b := r.findBudget(of, p, budgetUser{target: r.targets.canonical(cc), shadow: shadow},
		func(of *rules) string { return r.serviceOf(of, p, method, o) })
	if of.budgets[p.Budget()].scope != policy.ScopeService {
		cached.store(given, b)
	}
	return b
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
	if _, known := of.budgets[name]; !known {
		r.warnOnce(&unknownBudget, name, name)
	}
	u.service = service(of)
	key, _ := of.budgetKey(name, u)
	if b := r.budgets.findBalance(key); b != nil && of.settingsHold(key) {
		return b
	}
	return r.newBudget(of, name, u, service)
}

// make returns a new balance.
func (b *budgets) make(c balance.Config) (balance.Reloadable, error) {
	if b.pools != nil {
		return balance.New(c, b.pools.Lease)
	}
	return balance.New(c, nil)
}

// checkBudget returns an error if no balance can have the config.
func (b *budgets) checkBudget(name string, c balance.Config) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("interceptor: budget %q: %w", name, err)
	}
	if pool, _ := poolOf(c); pool != "" && b.given[name] == nil && b.pools == nil {
		return fmt.Errorf("interceptor: budget %q: its reserve is leased from the pool %q, and nothing says where that is; "+
			"add interceptor.WithFleet(fleet), with the fleet of redisbudget.New(client)", name, pool)
	}
	return nil
}

// lease sets the rates of the pools that budgets name, and starts their leases before a call needs them, so that pools know their clients.
func (b *budgets) lease(rules map[string]budgetRule) {
	for name, rule := range rules {
		if pool, perSecond := poolOf(rule.config); pool != "" && b.given[name] == nil {
			_, _ = b.pools.Lease(pool, perSecond) // never fails here
		}
	}
}

// poolOf returns the pool that a budget names, or "", and its rate.
func poolOf(c balance.Config) (pool string, perSecond float64) {
	if ratio, ok := c.(balance.RatioConfig); ok && ratio.Fleet != "" {
		return ratio.Fleet, ratio.MinPerSecond
	}
	return "", 0
}

// newBudget makes a balance, or gives an existing one the settings of a service config.
// It uses the newest rules, because a reload may have replaced those of the call.
func (r *Retrier) newBudget(of *rules, name string, u budgetUser, service func(*rules) string) balance.Budget {
	for {
		of = of.currentVersion(r.rules.Load())
		u.service = service(of)
		key, rule := of.budgetKey(name, u)
		settings := rule.settings(u.shadow)
		b, err := r.addBudget(of, key, settings)
		switch {
		case errors.Is(err, errReloaded):
		case err != nil: // from a service config: files are checked before
			r.warnOnce(&unusableBudget, name, name, err)
			return balance.Empty
		default:
			return b
		}
	}
}

// errReloaded reports that there are newer rules.
var errReloaded = errors.New("interceptor: there are newer rules")

// addBudget is newBudget under the lock. It runs no user code. The error is errReloaded, or that
// no balance can have these settings.
func (r *Retrier) addBudget(of *rules, key budgetKey, settings balance.Config) (balance.Budget, error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if of.currentVersion(r.rules.Load()) != of {
		return nil, errReloaded
	}
	b := r.budgets.hold(key)
	switch {
	case b == nil:
		fresh, err := r.budgets.make(settings)
		if err != nil {
			return nil, err
		}
		if now := clock.Now(); r.budgets.replaced.before(key, now) || of.delivered() && r.replacesBefore(key, now) {
			fresh.Drain(now)
		}
		b = r.budgets.keepBalance(key, fresh)
	case of.delivered():
		if err := b.Reload(clock.Now(), settings); err != nil { // settings without a fleet
			return nil, err
		}
	}
	if of.delivered() {
		of.applied.Store(key, true)
	}
	return b, nil
}

// otherService replaces the names of services that only the application's own callers choose, as in a proxy: their
// number is unbounded.
const otherService = "other"

// serviceOf returns the service whose balance pays for a call with scope SERVICE: the call's own, if the policy, generated
// code or a descriptor names it. Without that scope it returns "".
func (r *Retrier) serviceOf(of *rules, p *decision.Policy, method string, o *callOptions) string {
	if !of.perService {
		return ""
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	named, _, _ := strings.Cut(strings.TrimPrefix(p.Name(), "/"), "/")
	if named == service || o.static() || r.described(service) {
		return service
	}
	return otherService
}
