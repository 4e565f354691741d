// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/budget"
)

// BudgetCount is how many extra attempts the balances of a budget have granted and refused for a target and service,
// since the Retrier was made. Unlike [BudgetState] it outlives the balances, so that it never falls.
type BudgetCount struct {
	Name    string // in the policy file; "" is the default budget
	Kind    string // see [BudgetState]
	Source  BudgetSource
	Target  string // "" for all; "other" for those beyond the first thousand
	Service string // with scope SERVICE, else ""
	Shadow  bool   // of calls in mode OBSERVE

	Granted, Denied uint64
}

// BudgetCounts reads how many extra attempts the budgets have granted and refused so far, also by balances that are
// gone: one for each target and service up to a thousand, in the order of [Retrier.Budgets]. Of a target or service that
// nothing was granted or refused for, it may be missing once its balance is gone. It is safe for concurrent use.
func (r *Retrier) BudgetCounts() []BudgetCount {
	var list []BudgetCount
	add := func(key budgetKey, w withdrawals) {
		list = append(list, BudgetCount{
			Name: key.name, Kind: key.kind, Source: key.source, Target: key.target, Service: key.service, Shadow: key.shadow,
			Granted: w.granted, Denied: w.denied,
		})
	}
	for name, b := range r.budgets.given {
		add(givenKey(name, b), withdrawalsOf(b))
	}
	for key, w := range r.countBalances() {
		add(key, w)
	}
	slices.SortFunc(list, func(a, b BudgetCount) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Service, b.Service),
			compareBools(a.Shadow, b.Shadow), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// countBalances adds up what the balances of the table have counted, and those that were dropped.
func (r *Retrier) countBalances() map[budgetKey]withdrawals {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	sums := maps.Clone(r.budgets.counts.places)
	r.budgets.table.Range(func(_, v any) bool {
		kept, _ := v.(*balance)
		sums[kept.counted] = sums[kept.counted].plus(withdrawalsOf(kept.budget))
		return true
	})
	return sums
}

// withdrawals are how many were granted and refused.
type withdrawals struct{ granted, denied uint64 }

func withdrawalsOf(b budget.Budget) withdrawals { return withdrawals{b.Granted(), b.Denied()} }

func (w withdrawals) plus(more withdrawals) withdrawals {
	return withdrawals{w.granted + more.granted, w.denied + more.denied}
}

// mostCounted bounds the targets and services that are counted by their names.
const mostCounted = 1000

// otherTarget stands for the targets beyond that.
const otherTarget = "other"

// budgetCounts are the withdrawals of balances that were dropped. Where a balance is counted is decided when it is made,
// and for good, so that nothing is counted twice.
type budgetCounts struct {
	places map[budgetKey]withdrawals
}

// place returns what a new balance is counted as.
func (c *budgetCounts) place(key budgetKey) budgetKey {
	if c.places == nil {
		c.places = map[budgetKey]withdrawals{}
	}
	_, known := c.places[key]
	if !known && len(c.places) >= mostCounted {
		key.target, key.service = otherTarget, ""
		_, known = c.places[key]
	}
	if !known {
		c.places[key] = withdrawals{}
	}
	return key
}

// keep adds the counts of a balance that is dropped. What has counted nothing gives its place to another.
func (c *budgetCounts) keep(b *balance) {
	sum := c.places[b.counted].plus(withdrawalsOf(b.budget))
	if sum == (withdrawals{}) && b.counted.target != otherTarget {
		delete(c.places, b.counted)
		return
	}
	c.places[b.counted] = sum
}
