// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
)

func concurrent(tb testing.TB, percent float64, least int) *concurrentBudget {
	tb.Helper()
	return made[*concurrentBudget](tb, ConcurrentConfig{Percent: percent, Min: least})
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	play(t, concurrent(t, 20, 1), []step{
		{0, withdraw(failure), 0, true}, // Min
		{0, withdraw(failure), 0, false},
		{1, start(9), 0, true},                   // 1.8 of nine calls: one
		{1, start(1), 1, true},                   // 2 of ten
		{1, withdraw(timeout), 0, true},          // whatever the cost
		{2, withdraw(failure), 0, false},         //
		{3, giveBack(0), 1, true},                // not sent
		{3, withdraw(failure), 0, true},          //
		{4, settle(1, false), 1, true},           // it ends although it did not help
		{5, settle(2, true), 2, true},            //
		{5, finish(5, EventCallFailed), 1, true}, // 1 of five
	})
}
