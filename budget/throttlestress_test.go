// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/stagger-go/stagger/budget"
)

// Failures and successes that never meet a bound add up to the milli-token.
func TestThrottleAddsUpUnderStress(t *testing.T) {
	b := throttle(t, 1000, 0.125)
	fail(500)(b)
	together(func(int) {
		for range 4000 {
			b.Fail(t0)
			succeed(8)(b)
			b.Withdraw(t0, charge(budget.KindFailure))
			b.Finish(t0, budget.EndFailed)
		}
		b.Finish(t0, budget.EndAtOnce)
	})
	if got := b.Tokens(); got != 508 { // 500 + 64 · 0.125
		t.Errorf("%v tokens; want 508", got)
	}
}

// No order of failures and successes leaves the bounds.
func TestThrottleKeepsItsBoundsUnderStress(t *testing.T) {
	b := throttle(t, 3, 0.7)
	together(func(g int) {
		for i := range 500 {
			if (g+i/50)%2 == 0 {
				b.Fail(t0)
			} else {
				b.Finish(t0, budget.EndAtOnce)
			}
			if got := b.Tokens(); got < 0 || got > 3 {
				t.Errorf("%v tokens; want 0 to 3", got)
			}
		}
	})
}
