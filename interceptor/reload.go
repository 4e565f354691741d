// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/changes"
	"github.com/stagger-go/stagger/policy"
)

// Reload replaces the policies of the Retrier with those of a set. Running calls keep theirs. Reload scales a
// budget's balance to its new settings. A budget of another name, kind or scope starts full. A new loadBalancingConfig
// ([Retrier.DialOptions]) applies only to connections made after the reload, with a warning. Observers hear of notes about the set that were
// not true of the last one, and of all its warnings. On an error, nothing changes. Reload is safe for concurrent use.
func (r *Retrier) Reload(set *policy.Set) error {
	if set == nil {
		return errors.New("interceptor: Reload(nil): must be a set, as policy.Load or policy.Parse returns")
	}
	if !r.made() {
		return errNotMade
	}
	before, after, err := r.replace(set)
	r.announce(set, before, after, err)
	return err
}

// announce notifies observers of new rules or an error, and of the new policies' warnings.
func (r *Retrier) announce(set *policy.Set, before, after *rules, err error) {
	if err != nil {
		r.notifyReload(set, nil, err)
		return
	}
	r.notifyReload(set, changes.Of(before.set.Set, after.set.Set), nil)
	r.reportWarnings(before)
	r.warnBalancingChanged(before, after)
}

// replace is Reload without notifications. It returns the old and the new rules.
func (r *Retrier) replace(set *policy.Set) (before, after *rules, err error) {
	after = newRules(methods.Describe(set, r.descriptors...))
	if err := after.check(); err != nil {
		return nil, nil, err
	}
	before = r.replaceRules(after)
	return before, after, nil
}

// replaceRules replaces the Retrier's rules, gives the balances their settings, and returns the old
// rules.
func (r *Retrier) replaceRules(fresh *rules) (before *rules) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.waitLimit.setSlots(fresh.set.Compiled().MaxWaiting)
	r.budgets.Reload(fresh.budgets)
	before = r.rules.Swap(fresh)
	r.generation.Add(1)
	r.dropEntries()
	if fresh.restricts() {
		r.waits.recheck()
	}
	return before
}
