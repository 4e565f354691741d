// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/frombudget"
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

	unasked *decision.Policy // [Retrier.unasked]; its caches are the last
}

// budgetRule has a budget's config, and defines which calls share a balance.
type budgetRule struct {
	config balance.Config
	scope  policy.Scope
}

// alike reports whether a balance of one budget is valid for the other.
func (b budgetRule) alike(other budgetRule) bool {
	return b.scope == other.scope && b.config.Name() == other.config.Name()
}

// newRules returns the rules of a set. unasked is [Retrier.unasked].
func newRules(set *decision.Set, unasked *decision.Policy) *rules {
	n := len(set.Policies()) + 1
	r := &rules{set: set, unasked: unasked, budgets: map[string]budgetRule{}, cached: make([]cachedBudgets, n), methods: make([]cachedMethod, n)}
	for i, p := range set.Policies() {
		r.cached[i].policy = p
	}
	r.balancing, _ = set.LoadBalancing()
	r.budgets[""] = budgetRule{config: balance.Default(), scope: policy.ScopeTarget}
	if t := set.Config().Throttling; t != nil {
		r.budgets[""] = budgetRule{config: frombudget.Config(*t), scope: policy.ScopeTarget}
		r.throttled = true
	}
	for _, spec := range set.Config().Budgets {
		r.budgets[spec.Name] = budgetRule{config: frombudget.Config(spec.Config), scope: spec.Scope}
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
	return budgetKey{name: name, kind: rule.config.Name(), source: budgetOfPolicies, budgetUser: u}, rule
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

// place returns the index of a policy's caches, if it has some.
func (r *rules) place(p *decision.Policy) (i int, ok bool) {
	if p == r.unasked && p != nil {
		return len(r.cached) - 1, true
	}
	return p.Index(), r.own(p)
}

// cachedBudget returns nil for a policy of other rules, or of a single call.
func (r *rules) cachedBudget(p *decision.Policy, shadow bool) *cachedBudget {
	switch i, ok := r.place(p); {
	case !ok:
		return nil
	case shadow:
		return &r.cached[i].shadow
	default:
		return &r.cached[i].own
	}
}

// load returns nil if it holds no budget for the target.
func (c *cachedBudget) load(target string) balance.Budget {
	if c == nil {
		return nil
	}
	if b := c.first.Load(); b != nil && b.target == target {
		if k, ok := b.budget.(*keptBalance); !ok || !k.evicted.Load() {
			return b.budget
		}
		c.first.CompareAndSwap(b, nil)
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
	if i, ok := r.place(p); ok {
		return &r.methods[i]
	}
	return nil
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
