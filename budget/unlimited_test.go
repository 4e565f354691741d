// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"

	"github.com/stagger-go/stagger/budget"
)

func TestUnlimited(t *testing.T) {
	t.Parallel()
	for range 1000 {
		budget.Unlimited.Fail(t0)
		if !granted(budget.Unlimited, t0) {
			t.Fatal("refused")
		}
	}
	if got := budget.Unlimited.Balance(t0); !math.IsInf(got, 1) {
		t.Errorf("balance %v; want +Inf", got)
	}
	if got := budget.Unlimited.Denied(); got != 0 {
		t.Errorf("denied %d; want 0", got)
	}
}
