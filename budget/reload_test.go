// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

func spend(b budget.Budget, now time.Duration, n int) (out []budget.Permit) {
	for range n {
		if p, ok := b.Withdraw(now, charge(failure)); ok {
			out = append(out, p)
		}
	}
	return out
}

func reloaded(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAReloadScalesAndNeverRefills(t *testing.T) {
	t.Parallel()
	wide := budget.RatioConfig{Percent: 40, MinPerSecond: 4, Window: 10 * time.Second, TimeoutCost: 5}
	for _, row := range []struct {
		name          string
		spent         int
		before, after float64
	}{{"full", 0, 20, 80}, {"three quarters", 5, 15, 60}, {"exhausted", 20, 0, 0}} {
		b := ratio(t, 10, 1) // 10 in reserve, and 10 of 100 calls
		for range 100 {
			b.Start(t0)
		}
		spend(b, t0, row.spent)
		if got := b.Balance(t0); got != row.before {
			t.Fatalf("%s: balance %v; want %v", row.name, got, row.before)
		}
		reloaded(t, b.Reload(at(1), wide))
		if got := b.Balance(at(1)); got != row.after {
			t.Errorf("%s: balance %v after the reload; want %v", row.name, got, row.after)
		}
		wide.Window = 20 * time.Second
		reloaded(t, b.Reload(at(2), wide))
		part := row.before / 20
		if got, want := b.Balance(at(2)), part*(40+80); math.Abs(got-want) > 0.001 { // the calls, and twice the reserve
			t.Errorf("%s: balance %v with a longer window; want %v", row.name, got, want)
		}
		wide.Window = 10 * time.Second
	}
}

func TestTheSameConfigAgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := ratio(t, 10, 1)
	b.Start(t0)
	spend(b, t0, 3)
	before := b.Balance(at(1))
	for range 100 {
		reloaded(t, b.Reload(at(1), budget.RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 5, TimeoutBonus: 2.5}))
	}
	if got := b.Balance(at(1)); got != before {
		t.Errorf("balance %v; want %v", got, before)
	}
}

func TestPermitsFromBeforeAReloadGiveBackNoMoreThanTheyTook(t *testing.T) {
	t.Parallel()
	b := ratio(t, 10, 10) // 100
	out := spend(b, t0, 100)
	reloaded(t, b.Reload(at(1), budget.RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 5})) // 10
	for _, p := range out[:50] {
		b.Return(at(2), p)
	}
	if got := b.Balance(at(2)); got != 5 {
		t.Errorf("balance %v after half was returned; want half of 10", got)
	}
	for _, p := range out[50:] {
		b.Settle(at(2), p, true)
	}
	if got := b.Balance(at(2)); got != 10 {
		t.Errorf("balance %v after all was given back; want 10", got)
	}
}

func TestBucketsStayAsFullAsTheyWere(t *testing.T) {
	t.Parallel()
	thrown := throttle(t, 100, 1)
	for range 30 {
		thrown.Fail(t0)
	}
	reloaded(t, thrown.Reload(t0, budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.5}))
	if got := thrown.Tokens(); got != 7 {
		t.Errorf("throttle: %v tokens; want 7 of 10", got)
	}
	b := refunding(t, budget.RefundConfig{Capacity: 100, RetryCost: 5, TimeoutCost: 10, Success: 1})
	out := spend(b, t0, 10)
	reloaded(t, b.Reload(t0, budget.RefundConfig{Capacity: 10, RetryCost: 1, TimeoutCost: 1, Success: 1}))
	if got := b.Tokens(); got != 5 {
		t.Errorf("refund: %v tokens; want 5 of 10", got)
	}
	for _, p := range out {
		b.Return(t0, p)
	}
	if got := b.Tokens(); got != 10 {
		t.Errorf("refund: %v tokens after all was returned; want 10, and no more", got)
	}
}

func TestAReloadOfLimitsLeavesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	b := concurrent(t, 100, 4)
	out := spend(b, t0, 4)
	reloaded(t, b.Reload(t0, budget.ConcurrentConfig{Percent: 100, Min: 2}))
	b.Return(t0, out[0])
	if b.Return(t0, out[1]); granted(b, t0) {
		t.Error("granted with two of two in flight")
	}
	if b.Return(t0, out[2]); !granted(b, t0) {
		t.Error("refused with one of two in flight")
	}
}

func TestADrainedBudgetGrantsNothingAndEarnsAgain(t *testing.T) {
	t.Parallel()
	r, th, f := ratio(t, 10, 1), throttle(t, 11, 1), refunding(t, budget.DefaultRefund())
	for name, b := range map[string]interface {
		budget.Budget
		Drain(now time.Duration)
	}{"ratio": r, "throttle": th, "refund": f} {
		b.Start(t0)
		spend(b, t0, 1)
		b.Drain(t0)
		b.Drain(t0)
		if got := b.Balance(t0); got != 0 || granted(b, t0) {
			t.Errorf("%s: balance %v after it was drained", name, got)
		}
		for range 100 {
			b.Start(t0)
			b.Finish(t0, budget.EndAtOnce)
		}
		if !granted(b, t0) {
			t.Errorf("%s: earns nothing after it was drained", name)
		}
	}
}

func TestABadConfigIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	r, th, c, f := ratio(t, 10, 1), throttle(t, 10, 1), concurrent(t, 20, 3), refunding(t, budget.DefaultRefund())
	for name, err := range map[string]error{
		"ratio": r.Reload(t0, budget.RatioConfig{}), "throttle": th.Reload(t0, budget.ThrottleConfig{}),
		"concurrent": c.Reload(t0, budget.ConcurrentConfig{}), "refund": f.Reload(t0, budget.RefundConfig{}),
	} {
		if err == nil {
			t.Errorf("%s: an empty config is taken", name)
		}
	}
	if got := []float64{r.Balance(t0), th.Balance(t0), c.Balance(t0), f.Balance(t0)}; got[0] != 10 || got[1] != 5 || got[2] != 3 || got[3] != 100 {
		t.Errorf("balances %v", got)
	}
}
