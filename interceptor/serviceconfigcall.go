// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// delivered reports whether the rules come from a service config.
func (r *rules) delivered() bool { return r.file != nil }

// settle gives a balance that was there before the settings that were delivered, once: its tokens are
// scaled, and never refilled.
func (r *rules) settle(at place, b budget.Budget, spec policy.BudgetSpec) {
	if !r.delivered() {
		return
	}
	if _, done := r.settled.LoadOrStore(at, true); !done {
		_ = reload(b, budget.Now(), spec) // the settings have been checked
	}
}

// others reports whether the place has had a balance of another kind: that which takes its place begins with
// nothing.
func (b *budgets) others(at place) bool {
	own := at.kind
	for at.kind = range refund + 1 {
		if _, ok := b.table.Load(at); ok && at.kind != own {
			return true
		}
	}
	return false
}
