// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// policyOf is the policy that the calls of a fleet or a service follow in the variant.
func (v *Variant) policyOf(from, own string) string {
	if name, ok := v.Policies[from]; ok {
		return name
	}
	return cmp.Or(v.All, own)
}

// methodOf is the method that the calls of a fleet or a service have in the variant.
func (v *Variant) methodOf(from, own string) string {
	if _, named := v.Policies[from]; named || v.All == "" {
		return own
	}
	return cmp.Or(v.Method, own)
}

// NoPolicy is the name that means one attempt in a [Variant]'s policies.
const NoPolicy = "NONE"

// follow looks up what the calls follow, and what pays for them, as a Retrier does.
func (l *link) follow(s *Scenario, name, method string) error {
	one, err := single()
	if err != nil {
		return err
	}
	l.policy, l.budgets, l.room = one, &purse{free: true}, policy.DefaultMaxWaiting
	set := s.Policies[name]
	if set == nil {
		return nil
	}
	l.room = int32(min(set.MaxWaiting(), 1<<30)) //nolint:gosec // bounded
	p := set.Lookup(method)
	if p != nil {
		l.policy = p
		l.safe = set.Safe(p, method) || p.IdempotencyKey() != ""
	}
	return l.fund(set)
}

// fund finds the budget of the policy.
func (l *link) fund(set *policy.Set) error {
	name := l.policy.Budget()
	throttle := set.Throttling()
	if name == policy.NoBudget || l.policy.MaxAttempts() < 2 && throttle == nil {
		return nil
	}
	ratio := policy.DefaultRatio()
	spec := policy.BudgetSpec{Ratio: &ratio}
	if throttle != nil {
		spec = policy.BudgetSpec{Throttle: throttle}
	}
	for _, named := range set.Budgets() {
		if named.Name == name {
			spec = named
		}
	}
	if _, err := mint(spec); err != nil {
		return fmt.Errorf("sim: budget %q: %w", name, err)
	}
	l.budgets = &purse{spec: spec, list: make([]budget.Budget, len(l.processes.list))}
	return nil
}
