// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Reload puts the policies of a set in the place of those that the Retrier follows. Calls that have begun
// keep theirs. A budget that keeps its name, kind and scope keeps its balance, scaled to the new settings.
// Where it changes kind or scope, what takes the place of a balance in the next minute begins with nothing, and earns
// from there: a reload never refills a budget, so it can be used in the middle of an outage. A loadBalancingConfig that [Retrier.DialOptions] brings holds for
// connections that are made after the reload, with a warning. Whatever is wrong is refused, and changes nothing. It is
// safe for concurrent use.
func (r *Retrier) Reload(set *policy.Set) error {
	if set == nil {
		return errors.New("interceptor: Reload(nil): must be a set; policy.NewSet(policy.Config{}) is an empty one")
	}
	before, after, err := r.replace(set)
	r.announce(set, before, after, err)
	return err
}

// announce tells of a change from one rules to others, and of what is surprising in the policies that hold now.
func (r *Retrier) announce(set *policy.Set, before, after *rules, err error) {
	if err != nil {
		r.notifyReload(set, nil, err)
		return
	}
	r.notifyReload(set, decision.Changes(before.set.Set, after.set.Set), nil)
	r.reportWarnings()
	r.warnBalancingChanged(before, after)
}

// replace does what Reload says, but tells nobody. It returns the rules that held, and those that hold now.
func (r *Retrier) replace(set *policy.Set) (before, after *rules, err error) {
	if set, err = set.WithDescriptors(r.descriptors...); err != nil {
		return nil, nil, err
	}
	after = newRules(decision.Compile(set), budgetOfPolicies)
	if err := after.check(&r.budgets); err != nil {
		return nil, nil, err
	}
	before = r.follow(after)
	return before, after, nil
}

// follow puts rules in the place of those that the Retrier follows, which it returns, and gives the balances their
// settings.
func (r *Retrier) follow(fresh *rules) (before *rules) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.waitLimit.slots.Store(int64(fresh.set.Config().MaxWaiting))
	r.budgets.lease(fresh.budgets)
	r.budgets.reload(fresh.budgets)
	fresh.since = time.Now()
	before = r.rules.Swap(fresh)
	if fresh.restricts() {
		r.waits.recheck()
	}
	return before
}
