// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// rules are the current policies of a Retrier, with derived data. A reload replaces them; calls keep the policy
// with which they began.
type rules struct {
	set        *decision.Set
	since      time.Time             // when they became current
	budgets    map[string]budgetRule // by name; "" is the default budget
	throttled  bool                  // every call counts for the budget, even without retries
	perService bool                  // a budget has scope SERVICE
	cached     []cachedBudgets       // one for each policy of the set, by its index
	methods    []cachedMethod        // the same
	balancing  string                // see policy.Set.LoadBalancing

	// Only in rules from a service config.
	config  *configSet
	file    *rules   // those of the policy file, which also apply
	applied sync.Map // keys of balances with these settings
}

// budgetRule has a budget's config, and defines which calls share a balance.
type budgetRule struct {
	config balance.Config
	scope  policy.Scope
	source string
}

// alike reports whether a balance of one budget is valid for the other.
func (b budgetRule) alike(other budgetRule) bool {
	return b.scope == other.scope && b.config.Name() == other.config.Name()
}

// settings returns the config of a balance. A shadow has no share of a fleet's pool, which pays only for sent attempts.
func (b budgetRule) settings(shadow bool) balance.Config {
	if ratio, ok := b.config.(balance.RatioConfig); ok && shadow && ratio.Fleet != "" {
		ratio.Fleet, ratio.MinPerSecond = "", 0
		return ratio
	}
	return b.config
}

// newRules returns the rules of a set from the given source.
func newRules(set *decision.Set, source string) *rules {
	r := &rules{set: set, budgets: map[string]budgetRule{}, cached: make([]cachedBudgets, len(set.Policies())), methods: make([]cachedMethod, len(set.Policies()))}
	for i, p := range set.Policies() {
		r.cached[i].policy = p
	}
	r.balancing, _ = set.LoadBalancing()
	r.budgets[""] = budgetRule{config: balance.Default(), scope: policy.ScopeTarget, source: source}
	if t := set.Config().Throttling; t != nil {
		r.budgets[""] = budgetRule{config: inside.Config(*t), scope: policy.ScopeTarget, source: source}
		r.throttled = true
	}
	for _, spec := range set.Config().Budgets {
		r.budgets[spec.Name] = budgetRule{config: inside.Config(spec.Config), scope: spec.Scope, source: source}
		r.perService = r.perService || spec.Scope == policy.ScopeService
	}
	return r
}

// check returns an error for an invalid budget or load balancing, before a call or a connection needs them.
func (r *rules) check(of *budgets) error {
	if err := checkBalancing(r.set); err != nil {
		return err
	}
	for name, b := range r.budgets {
		if err := of.checkBudget(name, b.config); err != nil {
			return err
		}
	}
	return nil
}

// delivered reports whether the rules come from a service config.
func (r *rules) delivered() bool { return r.config != nil }

// currentVersion returns the current version of these rules. file has the policy file's current rules.
func (r *rules) currentVersion(file *rules) *rules {
	if r.delivered() {
		return r.config.beside(file)
	}
	return file
}

// budgetKey returns the key of the balance that pays for a call whose policy names a budget, and the budget: the default
// one if there is none with that name.
func (r *rules) budgetKey(name string, u budgetUser) (budgetKey, budgetRule) {
	rule, known := r.budgets[name]
	if !known {
		name, rule = "", r.budgets[""]
	}
	switch rule.scope {
	case policy.ScopeProcess:
		u.target, u.service = "", ""
	case policy.ScopeService:
	default:
		u.service = ""
	}
	return budgetKey{name: name, kind: rule.config.Name(), source: rule.source, budgetUser: u}, rule
}

// settingsHold reports whether a balance has the settings of these rules. A reload applies those of the
// policy file; the first call applies those of a service config.
func (r *rules) settingsHold(key budgetKey) bool {
	if !r.delivered() {
		return true
	}
	_, applied := r.applied.Load(key)
	return applied
}

// cachedBudgets are the budgets of a policy's calls: the usual one, and that of calls in mode OBSERVE.
type cachedBudgets struct {
	policy      *decision.Policy
	own, shadow cachedBudget
}

// cachedBudget caches the first budget of a policy's calls, which is usually the only one: then calls need no
// lookup, and don't write to shared memory.
type cachedBudget struct{ first atomic.Pointer[targetBudget] }

// targetBudget is a budget with its target.
type targetBudget struct {
	target string
	budget balance.Budget
}

// own reports whether a policy belongs to these rules; those of single calls don't.
func (r *rules) own(p *decision.Policy) bool {
	i := p.Index()
	return i >= 0 && i < len(r.cached) && r.cached[i].policy == p
}

// cachedBudget returns nil for a policy of other rules, or of a single call.
func (r *rules) cachedBudget(p *decision.Policy, shadow bool) *cachedBudget {
	switch {
	case !r.own(p):
		return nil
	case shadow:
		return &r.cached[p.Index()].shadow
	default:
		return &r.cached[p.Index()].own
	}
}

// load returns nil if it holds no budget for the target.
func (c *cachedBudget) load(target string) balance.Budget {
	if c == nil {
		return nil
	}
	if b := c.first.Load(); b != nil && b.target == target {
		return b.budget
	}
	return nil
}

// store keeps the first budget.
func (c *cachedBudget) store(target string, b balance.Budget) {
	if c != nil && c.first.Load() == nil {
		c.first.CompareAndSwap(nil, &targetBudget{target: target, budget: b})
	}
}

// cachedMethod caches the measurements of the first method that a policy's calls used, which is usually the only
// one.
type cachedMethod struct{ first atomic.Pointer[targetMethod] }

type targetMethod struct {
	target, method string
	known          *methods.Method
}

// cachedMethod returns nil for a policy of other rules, or of a single call.
func (r *rules) cachedMethod(p *decision.Policy) *cachedMethod {
	if !r.own(p) {
		return nil
	}
	return &r.methods[p.Index()]
}

// load returns nil if it holds another method.
func (c *cachedMethod) load(target, method string) *methods.Method {
	if c == nil {
		return nil
	}
	if m := c.first.Load(); m != nil && m.target == target && m.method == method && !m.known.Evicted() {
		return m.known
	}
	return nil
}

// store keeps the first method, and replaces a dropped one.
func (c *cachedMethod) store(target, method string, known *methods.Method) {
	if c == nil || known == nil {
		return
	}
	if first := c.first.Load(); first == nil || first.known.Evicted() {
		c.first.CompareAndSwap(first, &targetMethod{target, method, known})
	}
}
