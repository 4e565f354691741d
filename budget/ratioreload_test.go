// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// config is a ratio with the default costs.
func config(percent, minPerSecond float64, window time.Duration) budget.RatioConfig {
	return budget.RatioConfig{Percent: percent, MinPerSecond: minPerSecond, Window: window, TimeoutCost: 5, TimeoutBonus: 2.5}
}

func TestRatioReloadsInTheLedger(t *testing.T) {
	t.Parallel()
	reload := func(percent, minPerSecond float64, seconds int) action {
		return func(b *book, now time.Duration) bool {
			return b.Budget.(*budget.Ratio).Reload(now, config(percent, minPerSecond, time.Duration(seconds)*time.Second)) == nil
		}
	}
	for _, c := range []struct {
		name string
		rows []row
	}{
		{"a charge that has expired gives nothing back after a change of the window", []row{
			{0, withdraw(failure), 9, true},
			{10, withdraw(failure), 9, true},
			{12, reload(10, 1, 5), 4.5, true},
			{12, drop(0), 4.5, true},
			{12, drop(1), 5, true},
		}},
		{"a permit from before a reload is scaled, were its clock ahead", []row{
			{2, withdraw(failure), 9, true},
			{2, withdraw(failure), 8, true},
			{1, reload(10, 0.5, 10), 4, true},
			{2, drop(0), 4.5, true},
			{2, drop(1), 5, true},
		}},
		{"a permit from after a reload is not, were its clock behind", []row{
			{3, withdraw(failure), 9, true},
			{3, reload(10, 10, 10), 90, true},
			{2, withdraw(failure), 89, true},
			{4, drop(1), 90, true},
			{4, drop(0), 100, true},
		}},
		{"a debt stays a debt, however much more is allowed", []row{
			{0, start(10), 11, true},
			{0, reload(100, 0, 10), 10, true}, // the reserve goes
			{9, withdraw(timeout), 5, true},
			{10, look, 0, true}, // the calls go, and five are owed
			{10, reload(10, 1, 10), 0, true},
			{11, reload(10, 1e6, 10), 0, true},
			{18, look, 0, true},
			{19, look, 5e6, true}, // the half that was owed by the calls
			{20, look, 1e7, true}, // the half by the reserve
		}},
		{"calls count for no longer than a window, however often that changes", []row{
			{0, start(100), 20, true},
			{5, reload(10, 1, 20), 30, true},
			{15, reload(10, 1, 10), 10, true},
			{16, reload(10, 1, 20), 20, true},
		}},
		{"a longer window keeps what calls of the old one have earned", []row{
			{0, start(100), 20, true},
			{5, reload(10, 1, 20), 30, true},
			{18, look, 30, true},
			{19, look, 20, true}, // slots are 2 s wide now
		}},
		{"what was spent counts for a whole window after that has changed", []row{
			{0, withdraw(timeout), 5, true},
			{5, reload(10, 1, 20), 10, true},
			{24, look, 10, true},
			{25, look, 20, true},
		}},
		{"a reload whose clock is behind comes at the latest time", []row{
			{0, look, 10, true},
			{8, start(100), 20, true},
			{8, withdraw(failure), 19, true},
			{6, reload(10, 1, 20), 28.5, true},
			{8, drop(0), 30, true},
		}},
		{"reloads whose clocks disagree come one after the other", []row{
			{0, withdraw(failure), 9, true},
			{0.5, reload(10, 10, 10), 90, true},
			{0.3, reload(10, 5, 10), 45, true},
			{0.4, withdraw(failure), 44, true},
			{0.6, drop(1), 45, true},
		}},
		{"a permit is scaled by both of two reloads at a time", []row{
			{0, withdraw(failure), 9, true},
			{0, withdraw(failure), 8, true},
			{1, reload(10, 1, 20), 16, true},
			{1, reload(10, 10, 20), 160, true},
			{1, drop(0), 180, true},
		}},
		{"bonuses are kept by their age", []row{
			{0, withdraw(timeout), 5, true},
			{1, refund(0), 12.5, true},
			{2, withdraw(failure), 11.5, true},
			{5, reload(10, 2, 5), 11.5, true},
			{5.9, look, 11.5, true},
			{6, look, 9, true},
			{9.9, look, 9, true},
			{10, look, 10, true}, // what was spent counts from the reload
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run(t, ratio(t, 10, 1), c.rows)
		})
	}
}

// A call has earned a token, and two million are owed. Scaled by what is allowed then, that is more than 64
// bits hold.
func TestRatioReloadNeverOverflows(t *testing.T) {
	t.Parallel()
	b, err := budget.NewRatio(budget.RatioConfig{Percent: 100, Window: 10 * time.Second, TimeoutCost: 1000})
	reloaded(t, err)
	for range 2_000_000 {
		b.Start(t0)
	}
	for i := range 20 {
		if _, ok := b.Withdraw(at(float64(8+i%2)), budget.Charge{Kind: timeout, Factor: 100}); !ok {
			t.Fatal("refused")
		}
	}
	b.Start(at(10))
	reloaded(t, b.Reload(at(10), config(100, 1e6, 10*time.Second)))
	if got := b.Balance(at(10)); got != 0 {
		t.Errorf("balance %v; want 0", got)
	}
}

// The sixteenth reload from now forgets what the first one's permits are worth: they give nothing back.
func TestRatioForgetsOldReloads(t *testing.T) {
	t.Parallel()
	b := ratio(t, 10, 10)
	out := spend(b, t0, 50)
	for i := range 200 {
		reloaded(t, b.Reload(t0, config(10, 10+float64(i%2), 10*time.Second)))
	}
	before := b.Balance(t0)
	b.Return(t0, out[0])
	if got := b.Balance(t0); got != before {
		t.Errorf("balance %v; want %v", got, before)
	}
}

// A clock counts from any moment, and may be before it.
func TestRatioReloadsBeforeTheClockIsZero(t *testing.T) {
	t.Parallel()
	b := ratio(t, 10, 1)
	for range 100 {
		b.Start(-time.Hour)
	}
	reloaded(t, b.Reload(-time.Hour, config(20, 1, 10*time.Second)))
	if got := b.Balance(-time.Hour); got != 30 {
		t.Errorf("balance %v; want 30", got)
	}
}
