// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/stagger-go/stagger/budget"
)

// Not parallel: TestBudget counts the denials of the same value.
func TestEmpty(t *testing.T) {
	before := budget.Empty.Denied()
	for range 1000 {
		budget.Empty.Start(t0)
		budget.Empty.Finish(t0, budget.EndAtOnce)
		budget.Empty.Settle(t0, budget.Permit{Kind: timeout, At: t0}, true)
		if granted(budget.Empty, t0) {
			t.Fatal("granted")
		}
	}
	if got := budget.Empty.Balance(t0); got != 0 {
		t.Errorf("balance %v; want 0", got)
	}
	if got := budget.Empty.Denied() - before; got != 1000 {
		t.Errorf("denied %d; want 1000", got)
	}
}
