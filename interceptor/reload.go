// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// Reload puts the policies of a set in the place of those that the Retrier follows. Calls that have begun
// keep theirs. A budget that keeps its name, kind and scope keeps its balance, scaled to the new settings;
// one that changes kind or scope begins with nothing, and earns from there: a reload never refills a budget,
// so it can be used in the middle of an outage. Whatever is wrong is refused, and changes nothing. It is
// safe for concurrent use.
func (r *Retrier) Reload(set *policy.Set) error {
	if set == nil {
		return errors.New("interceptor: Reload(nil): must be a set; policy.NewSet(policy.Config{}) is an empty one")
	}
	set, err := set.WithDescriptors(r.descriptors...)
	if err != nil {
		return err
	}
	fresh := newRules(set)
	if err := fresh.check(); err != nil {
		return err
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	old := r.rules.Load()
	for name := range old.empty {
		fresh.empty[name] = true
	}
	for name, spec := range fresh.specs {
		if before, ok := old.specs[name]; ok && !before.Alike(spec) {
			fresh.empty[name] = true
		}
	}
	if !r.ownMaxWaiting {
		r.waitLimit.slots.Store(int64(set.MaxWaiting()))
	}
	if err := r.budgets.reload(fresh); err != nil {
		return err
	}
	r.rules.Store(fresh)
	for _, w := range r.warnings() {
		r.warn(w)
	}
	return nil
}

// reload scales the balances that there are, and forgets those whose budget has become one of another
// kind. Where a file does not name a budget any more, its balance waits for it to come back.
func (b *budgets) reload(r *rules) error {
	var (
		now  = budget.Now()
		errs []error
	)
	b.table.Range(func(key, one any) bool {
		at := key.(place) //nolint:errcheck,forcetypeassert // nothing else is stored
		spec, ok := r.specs[at.name]
		switch {
		case !ok:
		case kindOfBudget(spec) == at.kind:
			errs = append(errs, reload(one.(budget.Budget), now, spec)) //nolint:errcheck,forcetypeassert // nothing else is stored
		default:
			b.table.Delete(key)
		}
		return true
	})
	return errors.Join(errs...)
}
