// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// kinds makes one of every budget, with something to give where it ever gives.
func kinds(tb testing.TB) map[string]budget.Budget {
	tb.Helper()
	return map[string]budget.Budget{
		"ratio":      ratio(tb, 10, 1),
		"throttle":   throttle(tb, 10, 0.1),
		"concurrent": concurrent(tb, 20, 3),
		"refund":     refunding(tb, budget.RefundConfig{Capacity: 50, RetryCost: 5, TimeoutCost: 10, Success: 1}),
		"Unlimited":  budget.Unlimited,
		"Empty":      budget.Empty,
	}
}

// laws hold for every budget.
var laws = map[string]func(*testing.T, budget.Budget){
	"a withdrawal is granted or counted as denied": func(t *testing.T, b budget.Budget) {
		t.Helper()
		before, refused := b.Denied(), uint64(0)
		for range 100 {
			if !granted(b, t0) {
				refused++
			}
			b.Fail(t0)
		}
		if got := b.Denied() - before; got != refused {
			t.Errorf("denied %d; want %d", got, refused)
		}
	},
	"a withdrawal of cost 1 is granted exactly while the balance covers it": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for i := range 50 {
			balance := b.Balance(t0)
			_, isThrottle := b.(*budget.Throttle)
			want := balance >= 1 || isThrottle && balance > 0 // A6: more than half, were it a thousandth
			if got := granted(b, t0); got != want {
				t.Fatalf("withdrawal %d at balance %v: %v; want %v", i, balance, got, want)
			}
			b.Fail(t0)
		}
	},
	"a permit says what was asked and when": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for _, k := range []budget.Kind{failure, timeout} {
			p, ok := b.Withdraw(at(1), charge(k))
			if want := (budget.Permit{Charge: charge(k), At: at(1), Cost: p.Cost}); ok && p != want {
				t.Errorf("permit %+v; want %+v", p, want)
			}
			if !ok && p != (budget.Permit{}) {
				t.Errorf("refused with permit %+v; want none", p)
			}
		}
	},
	"what is returned was never taken": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for _, k := range []budget.Kind{failure, timeout} {
			before := b.Balance(t0)
			for range 1000 {
				if p, ok := b.Withdraw(t0, charge(k)); ok {
					b.Return(t0, p)
				}
			}
			if got := b.Balance(t0); got != before {
				t.Errorf("balance %v; want %v", got, before)
			}
		}
	},
	"a refund is never less than a return": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for _, k := range []budget.Kind{failure, timeout} {
			before := b.Balance(t0)
			if p, ok := b.Withdraw(t0, charge(k)); ok {
				b.Settle(t0, p, true)
			}
			if got := b.Balance(t0); got < before {
				t.Errorf("balance %v; want %v or more", got, before)
			}
		}
	},
	"the balance is a number and not negative": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for i := range 100 {
			now := at(float64(i))
			b.Start(now)
			for granted(b, now) && i%3 == 0 && b.Balance(now) < math.Inf(1) {
				b.Fail(now)
			}
			b.Finish(now, ending(i%2 == 0))
			if got := b.Balance(at(float64(i + i%20))); math.IsNaN(got) || got < 0 {
				t.Fatalf("balance %v", got)
			}
		}
	},
	"any time is taken": func(t *testing.T, b budget.Budget) {
		t.Helper()
		for _, now := range []time.Duration{t0, 0, math.MaxInt64, math.MinInt64, budget.Now()} {
			b.Start(now)
			p, _ := b.Withdraw(now, charge(timeout))
			b.Fail(now)
			b.Settle(now, p, true)
			b.Return(now, p)
			b.Finish(now, budget.EndAtOnce)
			if got := b.Balance(now); math.IsNaN(got) || got < 0 {
				t.Errorf("at %v: balance %v", now, got)
			}
		}
	},
	"sixty-four goroutines lose no count": func(t *testing.T, b budget.Budget) {
		t.Helper()
		const each = 200
		var wg sync.WaitGroup
		var yes atomic.Uint64
		before := b.Denied()
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					now := at(float64(i) / 10)
					b.Start(now)
					b.Fail(now)
					if p, ok := b.Withdraw(now, charge(budget.Kind(g%2))); ok {
						yes.Add(1)
						if i%2 == 0 {
							b.Settle(now, p, true)
						} else {
							b.Return(now, p)
						}
					}
					_ = b.Balance(now)
					b.Finish(now, ending(i%3 > 0))
				}
			})
		}
		wg.Wait()
		if got := yes.Load() + b.Denied() - before; got != goroutines*each {
			t.Errorf("granted and denied %d; want %d", got, goroutines*each)
		}
	},
}

// The subtests are not parallel: Empty is one value, with one count.
func TestLaws(t *testing.T) {
	for law, holds := range laws {
		t.Run(law, func(t *testing.T) {
			for name, b := range kinds(t) {
				t.Run(name, func(t *testing.T) { holds(t, b) })
			}
		})
	}
}
