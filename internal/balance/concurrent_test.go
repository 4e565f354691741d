// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"sync/atomic"
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
		{1, start(9), 0, true},             // 1.8 of nine calls: one
		{1, start(1), 1, true},             // 2 of ten
		{1, withdraw(timeout), 0, true},    // whatever the cost
		{2, withdraw(failure), 0, false},   //
		{3, giveBack(0), 1, true},          // not sent
		{3, withdraw(failure), 0, true},    //
		{4, settle(1, false), 1, true},     // it ends although it did not help
		{5, settle(2, true), 2, true},      //
		{5, finish(5, EndFailed), 1, true}, // 1 of five
	})
}

func TestConcurrentKeepsFractionsOfAPercent(t *testing.T) {
	t.Parallel()
	b := concurrent(t, 0.0001, 0)
	for range 999_999 {
		b.Start(t0)
	}
	if granted(b, t0) {
		t.Error("granted at 0.0001 % of 999,999")
	}
	b.Start(t0)
	if !granted(b, t0) {
		t.Error("refused at 0.0001 % of a million")
	}
}

func TestConcurrentUnderStress(t *testing.T) {
	for name, b := range map[string]*concurrentBudget{"least": concurrent(t, 0.0001, 10), "percent": concurrent(t, 10, 0)} {
		for range 100 {
			b.Start(t0)
		}
		var out, grants atomic.Int64
		together(func(g int) {
			for i := range 500 {
				p, ok := b.Withdraw(at(float64(i)), charge(failure))
				if !ok {
					continue
				}
				if n := out.Add(1); n > 10 {
					t.Errorf("%s: %d extra attempts in flight; want at most 10", name, n)
				}
				grants.Add(1)
				out.Add(-1)
				b.Settle(at(float64(g)), p, i%2 == 0)
			}
		})
		if got := b.Balance(t0); got != 10 || grants.Load() < 10 {
			t.Errorf("%s: balance %v after %d grants; want 10", name, got, grants.Load())
		}
	}
}
