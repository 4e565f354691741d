// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRefill(t *testing.T) {
	t.Parallel()
	const second = time.Second
	busy := func(b Budget, calls int) { // in the first slot
		for range calls {
			b.Start(0)
		}
	}
	spend := func(b Budget, now time.Duration, kind Kind) {
		for {
			if _, ok := b.Withdraw(now, Charge{Kind: kind}); !ok {
				return
			}
		}
	}
	retry := Charge{Kind: KindFailure}
	for name, row := range map[string]struct {
		config  Config
		prepare func(Budget)
		at      time.Duration
		charge  Charge
		want    time.Duration
	}{
		"it pays now":                   {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 10) }, second, retry, 0},
		"free":                          {ratioConfig(10, 0, 10), func(Budget) {}, second, Charge{Kind: KindUnsent}, 0},
		"what was spent leaves":         {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 10); spend(b, 2500*time.Millisecond, KindFailure) }, 3 * second, retry, 9 * second},
		"the newest slot, last":         {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 10); spend(b, 2500*time.Millisecond, KindFailure) }, 2900 * time.Millisecond, retry, 9100 * time.Millisecond},
		"in parts":                      {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 20); spend(b, 0, KindFailure) }, 9 * second, retry, second},
		"a rate":                        {ratioConfig(10, 0.1, 10), func(b Budget) { spend(b, 0, KindFailure) }, 4 * second, retry, 6 * second},
		"never, by this traffic":        {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 9) }, second, retry, 10 * second},
		"a dearer one":                  {ratioConfig(10, 0, 10), func(b Budget) { busy(b, 10) }, second, Charge{KindTimeout, 1}, 10 * second},
		"the default, without calls":    {Default(), func(b Budget) { spend(b, 0, KindFailure) }, second, retry, 5 * second},
		"the default, calls fill it":    {Default(), func(b Budget) { busy(b, 9); spend(b, 0, KindTimeout); spend(b, 0, KindFailure) }, second, retry, 1500 * time.Millisecond},
		"throttle: successes tell":      {ThrottleConfig{MaxTokens: 2, TokenRatio: 1}, func(b Budget) { b.Fail(0) }, second, retry, 0},
		"refund: successes tell":        {DefaultRefund(), func(b Budget) { spend(b, 0, KindFailure) }, second, retry, 0},
		"concurrent: ends tell":         {DefaultConcurrent(), func(b Budget) { spend(b, 0, KindFailure) }, second, retry, 0},
		"before the clock's zero point": {ratioConfig(10, 0.1, 10), func(b Budget) { spend(b, -4*second, KindFailure) }, -3 * second, retry, 9 * second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made[Reloadable](t, row.config)
			row.prepare(b)
			before := b.Balance(row.at)
			if got := Refill(b, row.at, row.charge); got != row.want || b.Balance(row.at) != before {
				t.Errorf("%v, balance %v; want %v, %v", got, b.Balance(row.at), row.want, before)
			}
		})
	}
	for name, b := range map[string]Budget{"empty": Empty, "unlimited": Unlimited} {
		if got := Refill(b, second, retry); got != 0 {
			t.Errorf("%s: %v; want 0, since nothing is known", name, got)
		}
	}
}

// Whatever has happened, the estimate is at most one window, and a budget with the estimate 0 pays.
func TestRefill_Bounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := rapid.SampledFrom([]Config{Default(), DefaultRatio(), RatioConfig{Percent: 100, Window: 60 * time.Second, TimeoutCost: 1}}).Draw(t, "config")
		b, err := New(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(rapid.Int64().Draw(t, "origin"))
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now += min(time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "passed")), math.MaxInt64-max(now, 0))
			if rapid.Bool().Draw(t, "call") {
				b.Start(now)
			} else {
				_, _ = b.Withdraw(now, Charge{Kind: KindFailure})
			}
		}
		window := 5 * time.Second
		if c, ok := config.(RatioConfig); ok {
			window = c.Window
		}
		got := Refill(b, now, Charge{Kind: KindFailure})
		if got < 0 || got > window {
			t.Fatalf("%v; want at most %v", got, window)
		}
		if _, ok := b.Withdraw(now, Charge{Kind: KindFailure}); ok != (got == 0) {
			t.Fatalf("estimated %v; paid: %v", got, ok)
		}
	})
}
