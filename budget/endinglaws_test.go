// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"

	"github.com/stagger-go/stagger/budget"
)

// endings are laws of how extra attempts end, and of what is asked for them.
var endings = map[string]func(*testing.T, budget.Budget){
	"an attempt that did not help gives nothing back, but its place": func(t *testing.T, b budget.Budget) {
		t.Helper()
		out := spend(b, t0, 100)
		before := b.Balance(t0)
		for _, p := range out {
			b.Settle(t0, p, false)
		}
		if _, ok := b.(*budget.Concurrent); ok {
			before = float64(len(out))
		}
		if got := b.Balance(t0); got != before {
			t.Errorf("balance %v; want %v", got, before)
		}
	},
	"attempts that helped after failures leave no more than there was": func(t *testing.T, b budget.Budget) {
		t.Helper()
		before := b.Balance(t0)
		for range 20 {
			for _, p := range spend(b, t0, 3) {
				b.Settle(t0, p, true)
			}
		}
		if got := b.Balance(t0); got != before {
			t.Errorf("balance %v; want %v", got, before)
		}
	},
	"a refusal changes nothing but the count": func(t *testing.T, b budget.Budget) {
		t.Helper()
		spend(b, t0, 3)
		for _, c := range []budget.Charge{{}, {Kind: timeout}, {Kind: 200, Factor: 100}, {Factor: 99}, {Kind: budget.KindHedge, Factor: 1e-9}} {
			before, denied := b.Balance(t0), b.Denied()+1
			if p, ok := b.Withdraw(t0, c); ok {
				b.Return(t0, p)
				denied--
			}
			if got := b.Balance(t0); got != before {
				t.Errorf("%+v: balance %v; want %v", c, got, before)
			}
			if got := b.Denied(); got != denied {
				t.Errorf("%+v: denied %d; want %d", c, got, denied)
			}
		}
	},
	"a factor that is none counts as one": func(t *testing.T, b budget.Budget) {
		t.Helper()
		one, granted := b.Withdraw(t0, budget.Charge{Factor: 1})
		b.Return(t0, one)
		for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 100.001, math.MaxFloat64, -math.SmallestNonzeroFloat64} {
			p, ok := b.Withdraw(t0, budget.Charge{Factor: f})
			if ok != granted || p.Cost != one.Cost {
				t.Errorf("factor %v: granted %v at %d; want %v at %d", f, ok, p.Cost, granted, one.Cost)
			}
			if ok {
				b.Return(t0, p)
			}
		}
	},
	"an attempt is never free, however small its factor": func(t *testing.T, b budget.Budget) {
		t.Helper()
		one, granted := b.Withdraw(t0, budget.Charge{Factor: 1})
		p, ok := b.Withdraw(t0, budget.Charge{Factor: math.SmallestNonzeroFloat64})
		if ok != granted || (p.Cost == 0) != (one.Cost == 0) {
			t.Errorf("granted %v at %d; want %v, and at 0 only if all are", ok, p.Cost, granted)
		}
	},
	"permits that nobody gave take nothing, and bring nothing that was not spent": func(t *testing.T, b budget.Budget) {
		t.Helper()
		b.Start(t0)
		before := b.Balance(t0)
		spend(b, t0, 2)
		least := b.Balance(t0)
		for _, cost := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			b.Return(t0, budget.Permit{At: t0, Cost: cost})
			b.Settle(t0, budget.Permit{At: -t0, Cost: cost, Charge: budget.Charge{Factor: math.NaN()}}, true)
			if got := b.Balance(t0); got > before || got < least {
				t.Errorf("cost %d: balance %v; want %v to %v", cost, got, least, before)
			}
		}
	},
}

func TestLawsOfEndings(t *testing.T) {
	for law, holds := range endings {
		t.Run(law, func(t *testing.T) {
			for name, b := range kinds(t) {
				t.Run(name, func(t *testing.T) { holds(t, b) })
			}
		})
	}
}
