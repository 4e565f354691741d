// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/methods"
)

// rules are the current policies of a Retrier, with derived data. A reload replaces them; calls keep the policy
// with which they began.
type rules struct {
	set       *methods.Set
	budgets   map[string]accounts.Rule // by name; "" is the default budget
	throttled bool                     // every call counts for the budget, even without retries
	channel   channel
	balancing string                // see balancing.Config
	elsewhere balancing.Hook        // nil: the program does not import package elsewhere
	newGate   func() admitting.Gate // of admission; nil: the program does not import that package
}

// newRules returns the rules of a set.
func newRules(set *methods.Set) *rules {
	r := &rules{set: set, budgets: map[string]accounts.Rule{}, elsewhere: importedElsewhere(), newGate: admitting.Registered()}
	r.channel = newChannel(set)
	config := set.Compiled().Channel()
	r.balancing = balancing.Config(config)
	r.budgets[""] = accounts.Rule{Config: budget.Default(), Scope: "TARGET"}
	if t := set.Compiled().RetryThrottling; t != nil {
		r.budgets[""] = accounts.Rule{Config: *t, Scope: "TARGET"}
		r.throttled = true
	}
	for _, spec := range set.Compiled().Budgets {
		r.budgets[spec.Name] = accounts.Rule{Config: spec.Config, Scope: spec.Scope}
	}
	return r
}

// check returns an error for an invalid budget or load balancing, or for admission that the program does not import, before a call or a
// connection needs them.
func (r *rules) check() error {
	if err := r.checkBalancing(); err != nil {
		return err
	}
	if err := r.checkAdmission(); err != nil {
		return err
	}
	for name, b := range r.budgets {
		if err := checkBudget(name, b.Config); err != nil {
			return err
		}
	}
	return nil
}
