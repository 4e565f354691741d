// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"maps"

	"github.com/stagger-go/stagger/internal/balance"
)

// countBalances returns the withdrawals of all balances, including dropped ones.
func (r *Retrier) countBalances() map[budgetKey]withdrawals {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	sums := maps.Clone(r.budgets.counts.places)
	r.budgets.table.Range(func(_, v any) bool {
		kept, _ := v.(*keptBalance)
		sums[kept.counted] = sums[kept.counted].plus(withdrawalsOf(kept))
		return true
	})
	return sums
}

// withdrawals counts granted and denied withdrawals.
type withdrawals struct{ granted, denied uint64 }

// withdrawalsOf returns nothing for a user's budget that panics.
func withdrawalsOf(b balance.Budget) (w withdrawals) {
	defer func() { _ = recover() }()
	return withdrawals{b.Granted(), b.Denied()}
}

func (w withdrawals) plus(more withdrawals) withdrawals {
	return withdrawals{w.granted + more.granted, w.denied + more.denied}
}

// mostCounted bounds the targets and services that are counted by name.
const mostCounted = 1000

// otherTarget stands for the targets beyond that.
const otherTarget = "other"

// budgetCounts are the withdrawals of dropped balances. The key under which a balance counts is fixed when it is made,
// so that nothing is counted twice.
type budgetCounts struct {
	places map[budgetKey]withdrawals
}

// place returns the key under which a new balance counts.
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

// keep adds the counts of a dropped balance. Without any, it frees the place for another balance.
func (c *budgetCounts) keep(b *keptBalance) {
	sum := c.places[b.counted].plus(withdrawalsOf(b))
	if sum == (withdrawals{}) && b.counted.target != otherTarget {
		delete(c.places, b.counted)
		return
	}
	c.places[b.counted] = sum
}
