// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// rules are what a Retrier follows at a time. A reload puts others in their place; calls keep the policy
// that they began with.
type rules struct {
	set       *policy.Set
	specs     map[string]policy.BudgetSpec // by name; "" is the default budget
	empty     map[string]bool              // budgets by name that begin with nothing
	throttled bool                         // the file throttles every call, those without retries too
	seats     []seat                       // one for each policy of the set, by its index
	file      *rules                       // those of the policy file, beside which these were delivered; nil for those
	settled   sync.Map                     // places whose balance has the settings that were delivered
}

// seat remembers the balance that a policy's calls used first, which for most is the only one: a
// call then needs no look-up, and nobody writes.
type seat struct {
	policy *policy.Policy
	taken  atomic.Pointer[balance]
}

// balance is the budget for a target.
type balance struct {
	target string
	budget budget.Budget
}

func newRules(set *policy.Set) *rules {
	r := &rules{set: set, specs: map[string]policy.BudgetSpec{}, empty: map[string]bool{}, seats: make([]seat, len(set.Policies()))}
	for i, p := range set.Policies() {
		r.seats[i].policy = p
	}
	ratio := policy.DefaultRatio()
	r.specs[""] = policy.BudgetSpec{Ratio: &ratio}
	if t := set.Throttling(); t != nil {
		r.specs[""] = policy.BudgetSpec{Throttle: t}
		r.throttled = true
	}
	for _, spec := range set.Budgets() {
		r.specs[spec.Name] = spec
	}
	return r
}

// check makes one budget of each kind, so that a bad one is refused now and not in a call.
func (r *rules) check() error {
	for name, spec := range r.specs {
		if _, err := build(spec); err != nil {
			return fmt.Errorf("interceptor: budget %q: %w", name, err)
		}
	}
	return nil
}

// spec is the budget of that name, or the default one; known is false if there is none.
func (r *rules) spec(name string) (_ string, spec policy.BudgetSpec, known bool) {
	if spec, known = r.specs[name]; known {
		return name, spec, true
	}
	return "", r.specs[""], false
}
