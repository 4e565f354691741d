// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// reloadable is a budget that is made a good deal larger and smaller in turn, and stays as full.
type reloadable struct {
	budget.Budget

	resize func(i int) error
}

// reloadables have 20 extra attempts to give when full, at either size.
func reloadables(tb testing.TB) map[string]reloadable {
	tb.Helper()
	r, th, c := ratio(tb, 10, 2), throttle(tb, 40, 1), concurrent(tb, 20, 20)
	f := refunding(tb, budget.RefundConfig{Capacity: 100, RetryCost: 5, TimeoutCost: 5})
	return map[string]reloadable{
		"ratio": {r, func(i int) error {
			window := 10 + 10*(i%2)
			return r.Reload(t0, config(10, 20/float64(window), time.Duration(window)*time.Second))
		}},
		"throttle": {th, func(i int) error {
			return th.Reload(t0, budget.ThrottleConfig{MaxTokens: 40 + 60*(i%2), TokenRatio: 1})
		}},
		"concurrent": {c, func(i int) error {
			return c.Reload(t0, budget.ConcurrentConfig{Percent: float64(10 + i%2), Min: 20})
		}},
		"refund": {f, func(i int) error {
			size := float64(1 + i%2)
			return f.Reload(t0, budget.RefundConfig{Capacity: 100 * size, RetryCost: 5 * size, TimeoutCost: 5 * size})
		}},
	}
}

// While one goroutine reloads, the others take what there is: not one extra attempt more comes of it.
func TestReloadsUnderStressNeverRefill(t *testing.T) {
	for name, b := range reloadables(t) {
		var grants atomic.Int64
		together(func(g int) {
			for i := range 300 {
				switch {
				case g == 0:
					reloaded(t, b.resize(i))
				case granted(b, t0):
					grants.Add(1)
					b.Fail(t0)
				}
			}
		})
		// A throttle grants to all who ask before the failures of the others are known.
		if got := grants.Load(); got > 20 && name != "throttle" {
			t.Errorf("%s: %d grants of 20", name, got)
		}
	}
}

func TestWhatIsExhaustedStaysSoUnderReloads(t *testing.T) {
	for name, b := range reloadables(t) {
		for granted(b, t0) {
			b.Fail(t0)
		}
		together(func(g int) {
			for i := range 300 {
				if g == 0 {
					reloaded(t, b.resize(i))
				} else if granted(b, t0) {
					t.Errorf("%s: granted, and balance %v", name, b.Balance(t0))
				}
			}
		})
	}
}

// Everything is given back, before, during and after reloads: the budget is full then, and no more.
func TestNothingIsMadeByReloadsUnderStress(t *testing.T) {
	for name, b := range reloadables(t) {
		together(func(g int) {
			for i := range 300 {
				b.Start(t0)
				if g == 0 {
					reloaded(t, b.resize(i))
				}
				if p, ok := b.Withdraw(t0, charge(failure)); ok && i%2 == 0 {
					b.Return(t0, p)
				} else if ok {
					b.Settle(t0, p, true)
				}
				if got := b.Balance(t0); got < 0 || math.IsNaN(got) {
					t.Errorf("%s: balance %v", name, got)
				}
				b.Finish(t0, budget.EndFailed)
			}
		})
		reloaded(t, b.resize(0))
		most := 20.0
		if name == "ratio" {
			most += 64 * 300 / 10
		}
		if got := b.Balance(t0); got > most {
			t.Errorf("%s: balance %v; want at most %v", name, got, most)
		}
	}
}
