// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

func throttle(tb testing.TB, maxTokens int, tokenRatio float64) *budget.Throttle {
	tb.Helper()
	b, err := budget.NewThrottle(budget.ThrottleConfig{MaxTokens: maxTokens, TokenRatio: tokenRatio})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// fail and succeed are n attempts that failed, and n calls that ended well.
func fail(n int) func(*budget.Throttle) {
	return func(b *budget.Throttle) {
		for range n {
			b.Fail(t0)
		}
	}
}

func succeed(n int) func(*budget.Throttle) {
	return func(b *budget.Throttle) {
		for range n {
			b.Finish(t0, budget.EndAtOnce)
		}
	}
}

// Each row is a sentence of gRFC A6 (“Throttling retry attempts and hedged RPCs”).
func TestThrottleArithmetic(t *testing.T) {
	t.Parallel()
	type step struct {
		do     func(*budget.Throttle)
		tokens float64
		ok     bool // of a withdrawal afterwards
	}
	none := fail(0)
	for _, c := range []struct {
		name      string
		maxTokens int
		ratio     float64
		steps     []step
	}{
		{"it starts full", 10, 0.1, []step{{none, 10, true}}},
		{"success cannot fill it further", 10, 0.1, []step{{succeed(5), 10, true}, {fail(1), 9, true}, {succeed(11), 10, true}}},
		{"a failure takes one", 10, 0.1, []step{{fail(1), 9, true}, {fail(3), 6, true}}},
		{"exactly half is not more than half", 10, 0.1, []step{{fail(5), 5, false}, {succeed(1), 5.1, true}}},
		{"half of an odd number is not rounded", 5, 0.001, []step{
			{fail(2), 3, true},
			{fail(1), 2, false},
			{succeed(500), 2.5, false},
			{succeed(1), 2.501, true},
		}},
		{"nothing goes below zero", 3, 0.5, []step{{fail(100), 0, false}, {succeed(3), 1.5, false}, {succeed(1), 2, true}}},
		{"the smallest bucket stops at its first failure", 1, 1, []step{{fail(1), 0, false}, {succeed(1), 1, true}}},
		{"the largest bucket", 1000, 1, []step{{fail(499), 501, true}, {fail(1), 500, false}, {succeed(1), 501, true}}},
		{"0.5466 is 0.546", 10, 0.5466, []step{{fail(10), 0, false}, {succeed(1), 0.546, false}, {succeed(9), 5.46, true}}},
		{"0.5469999 is 0.546", 10, 0.5469999, []step{{fail(10), 0, false}, {succeed(1), 0.546, false}}},
		{"1.001 is 1.001, though 1.001 · 1000 falls short in floating point", 10, 1.001, []step{
			{fail(10), 0, false},
			{succeed(1), 1.001, false},
		}},
		{"0.001 a thousand times is 1", 10, 0.001, []step{{fail(10), 0, false}, {succeed(1000), 1, false}}},
		{"0.1 ten times is 1", 10, 0.1, []step{{fail(10), 0, false}, {succeed(10), 1, false}}},
		{"a ratio above one", 10, 2.5, []step{{fail(10), 0, false}, {succeed(2), 5, false}, {succeed(1), 7.5, true}}},
		{"a ratio above the bucket fills it", 10, 1e300, []step{{fail(10), 0, false}, {succeed(1), 10, true}}},
		{"a call that ends badly is counted by Fail alone", 10, 1, []step{
			{func(b *budget.Throttle) { b.Finish(t0, budget.EndFailed) }, 10, true},
			{fail(3), 7, true},
			{func(b *budget.Throttle) { b.Finish(t0, budget.EndFailed) }, 7, true},
		}},
		{"a call begins for nothing", 10, 1, []step{{fail(5), 5, false}, {func(b *budget.Throttle) { b.Start(t0) }, 5, false}}},
		{"permits are free, and nothing comes of them", 10, 1, []step{{func(b *budget.Throttle) {
			b.Fail(t0)
			for _, k := range []budget.Kind{failure, timeout} {
				p, _ := b.Withdraw(t0, charge(k))
				b.Settle(t0, p, true)
				b.Return(t0, p)
			}
		}, 9, true}}},
		{"time heals nothing", 10, 1, []step{
			{fail(5), 5, false},
			{func(b *budget.Throttle) { b.Start((t0 + time.Hour)) }, 5, false},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := throttle(t, c.maxTokens, c.ratio)
			for i, s := range c.steps {
				s.do(b)
				if got := b.Tokens(); got != s.tokens {
					t.Fatalf("step %d: %v tokens; want %v", i, got, s.tokens)
				}
				for _, k := range []budget.Kind{failure, timeout} {
					if _, ok := b.Withdraw(t0, charge(k)); ok != s.ok {
						t.Errorf("step %d: after %v granted %v; want %v", i, k, ok, s.ok)
					}
				}
				if got, want := b.Balance(t0), max(s.tokens-float64(c.maxTokens)/2, 0); math.Abs(got-want) > 1e-9 {
					t.Errorf("step %d: balance %v; want %v", i, got, want)
				}
			}
		})
	}
}

// The balance says how many failures it takes until nothing is granted.
func TestThrottleBalanceCountsFailures(t *testing.T) {
	t.Parallel()
	for most := 1; most <= 1000; most++ {
		b := throttle(t, most, 1)
		want, failures := math.Ceil(b.Balance(t0)), 0
		for granted(b, t0) {
			b.Fail(t0)
			failures++
		}
		if float64(failures) != want {
			t.Fatalf("bucket of %d: %d failures; want %v", most, failures, want)
		}
	}
}

func TestThrottleDrainLeavesWhatIsLessThanHalf(t *testing.T) {
	t.Parallel()
	b := throttle(t, 10, 1)
	fail(8)(b)
	b.Drain(t0)
	if got := b.Tokens(); got != 2 {
		t.Errorf("%v tokens; want the 2 that were left", got)
	}
}
