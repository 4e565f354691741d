// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
)

func concurrent(tb testing.TB, percent float64, least int) *budget.Concurrent {
	tb.Helper()
	b, err := budget.NewConcurrent(budget.ConcurrentConfig{Percent: percent, Min: least})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func ExampleConcurrent() {
	b, err := budget.NewConcurrent(budget.ConcurrentConfig{Percent: 20, Min: 1})
	if err != nil {
		panic(err)
	}
	now := budget.Now()
	for range 10 { // ten calls in flight
		b.Start(now)
	}
	for range 3 {
		_, ok := b.Withdraw(now, budget.Charge{Kind: budget.KindFailure})
		fmt.Println(ok)
	}
	// Output:
	// true
	// true
	// false
}

func TestConcurrentCountsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	run(t, concurrent(t, 20, 1), []row{
		{0, withdraw(failure), 0, true}, // the least
		{0, withdraw(failure), 0, false},
		{1, start(9), 0, true},                    // 1.8 of nine calls: one
		{1, start(1), 1, true},                    // 2 of ten
		{1, withdraw(timeout), 0, true},           // dear as it may be
		{2, withdraw(failure), 0, false},          //
		{3, drop(0), 1, true},                     // not sent
		{3, withdraw(failure), 0, true},           //
		{4, settle(1, false), 1, true},            // it did not help, and is over all the same
		{5, refund(2), 2, true},                   //
		{5, finish(5, budget.EndFailed), 1, true}, // 1 of five
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

func TestConcurrentRefusesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	_, err := budget.NewConcurrent(budget.ConcurrentConfig{Percent: math.NaN(), Min: -1})
	for _, want := range []string{"Percent NaN: must be 0.0001 to 1000", "Min -1: must be 0 to 1000000"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestConcurrentIsItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share, least := int64(rapid.IntRange(1, 3_000_000).Draw(t, "share")), rapid.IntRange(0, 5).Draw(t, "least")
		b, err := budget.NewConcurrent(budget.ConcurrentConfig{Percent: float64(share) / 1e4, Min: least})
		if err != nil {
			t.Fatal(err)
		}
		var calls, extra int64
		var out []budget.Permit
		take := func() budget.Permit {
			if len(out) == 0 {
				t.Skip("no permit is out")
			}
			p := out[0]
			out, extra = out[1:], extra-1
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(*rapid.T) { b.Start(at(float64(calls))); calls++ },
			"finish": func(t *rapid.T) {
				if calls == 0 {
					t.Skip("no call is in flight")
				}
				calls--
				b.Finish(at(float64(calls)/7), budget.EndFailed)
			},
			"withdraw": func(t *rapid.T) {
				want := (extra+1)*1e6 <= max(int64(least)*1e6, calls*share)
				p, ok := b.Withdraw(t0, charge(failure))
				if ok != want {
					t.Fatalf("granted %v with %d calls and %d extra; want %v", ok, calls, extra, want)
				}
				if ok {
					out, extra = append(out, p), extra+1
				}
			},
			"return": func(*rapid.T) { b.Return(t0, take()) },
			"settle": func(t *rapid.T) { b.Settle(t0, take(), rapid.Bool().Draw(t, "helped")) },
		})
	})
}

func TestConcurrentIsNeverOverItsLimitUnderStress(t *testing.T) {
	for name, b := range map[string]*budget.Concurrent{"least": concurrent(t, 0.0001, 10), "percent": concurrent(t, 10, 0)} {
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
