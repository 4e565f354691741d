// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"testing"
)

func refund(tb testing.TB, c RefundConfig) *refundBudget {
	tb.Helper()
	return made[*refundBudget](tb, c)
}

func TestRefund(t *testing.T) {
	t.Parallel()
	b := refund(t, RefundConfig{Capacity: 20, RetryCost: 5, TimeoutCost: 10, Success: 1.5})
	play(t, b, []step{
		{0, withdraw(timeout), 2, true},
		{0, withdraw(KindHedge), 1, true},
		{0, withdraw(timeout), 1, false},
		{0, withdraw(failure), 0, true},
		{0, withdraw(failure), 0, false},
		{1, settle(2, false), 0, true}, // it did not help
		{1, settle(0, true), 2, true},
		{1, giveBack(1), 3, true},
		{2, finish(1, EndAtOnce), 3.3, true},
		{2, finish(1, EndSucceeded), 3.3, true}, // its extra attempt has paid for itself
		{2, finish(1, EndFailed), 3.3, true},
		{3, finish(10, EndAtOnce), 4, true}, // full
	})
	if p, ok := b.Withdraw(t0, Charge{Factor: 2.5}); !ok || p.Cost != 12_500 || tokens(&b.bucket) != 7.5 {
		t.Errorf("%+v, %v, %v tokens left; want a cost of 12.5 out of 20", p, ok, tokens(&b.bucket))
	}
}
