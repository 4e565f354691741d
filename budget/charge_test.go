// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// An attempt after an unsent one is free, whatever was spent; only attempts in flight count.
func TestKindUnsent(t *testing.T) {
	owing := ratio(t, 100, 0)
	for range 5 {
		owing.Start(t0)
	}
	spend(owing, at(9), 5)
	all := kinds(t)
	all["ratio in debt"] = owing
	for name, b := range all {
		now := at(10)
		for range 100 {
			b.Fail(now)
			b.Withdraw(now, charge(failure))
		}
		before := b.Balance(now)
		p, ok := b.Withdraw(now, Charge{Cause: CauseUnsent, Factor: 7})
		if want := name != "concurrent"; ok != want {
			t.Errorf("%s: granted %v with nothing left; want %v", name, ok, want)
		}
		if ok {
			b.Settle(now, p, true)
		}
		if got := b.Balance(now); got != before {
			t.Errorf("%s: balance %v; want %v", name, got, before)
		}
	}
	b := concurrent(t, 20, 1)
	p, ok := b.Withdraw(t0, charge(CauseUnsent))
	if !ok || b.Balance(t0) != 0 {
		t.Errorf("concurrent: granted %v, balance %v; want the one place taken", ok, b.Balance(t0))
	}
	if b.Settle(t0, p, false); b.Balance(t0) != 1 {
		t.Errorf("concurrent: balance %v after it has ended; want 1", b.Balance(t0))
	}
}

func TestChargeFactor(t *testing.T) {
	t.Parallel()
	for factor, want := range map[float64]int64{bounds.MaxFactor: 100e6, bounds.MaxFactor + 1: 1e6, 0.5: 0.5e6, 0: 1e6, -1: 1e6} {
		if p, ok := ratio(t, 10, 100).Withdraw(0, Charge{Factor: factor}); !ok || p.Cost != want {
			t.Errorf("factor %v: granted %v for %d; want %d", factor, ok, p.Cost, want)
		}
	}
}

// A charge that only earnings may pay gets nothing of a reserve: ten calls earn one attempt.
func TestCharge_EarnedOnly(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{
		"a rate":     RatioConfig{Percent: 10, MinPerSecond: 100, Window: time.Second, TimeoutCost: 1},
		"the bucket": Default(),
		"concurrent": ConcurrentConfig{Percent: 10, Min: 7},
	} {
		b, err := newKind(config)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			b.Start(0)
		}
		for i, want := range []bool{true, false} {
			if _, ok := b.Withdraw(0, Charge{EarnedOnly: true}); ok != want {
				t.Errorf("%s, attempt %d: granted: %v; want %v", name, i+1, ok, want)
			}
		}
		if _, ok := b.Withdraw(0, Charge{}); !ok {
			t.Errorf("%s: the reserve pays for nothing", name)
		}
	}
}
