// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"testing"
	"time"
)

// ratioConfig has the default costs.
func ratioConfig(percent, minPerSecond float64, seconds int) RatioConfig {
	return RatioConfig{
		Percent: percent, MinPerSecond: minPerSecond, Window: time.Duration(seconds) * time.Second,
		TimeoutCost: 5, TimeoutBonus: 2.5,
	}
}

// ratio returns a budget with the default costs and window.
func ratio(tb testing.TB, percent, minPerSecond float64) *ratioBudget {
	tb.Helper()
	return made[*ratioBudget](tb, ratioConfig(percent, minPerSecond, 10))
}

// Slots are 1 s wide.
func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		percent, minPerSecond float64
		steps                 []step
	}{
		{"calls earn their share", 10, 0, []step{
			{0, withdraw(failure), 0, false},
			{0, start(9), 0.9, true},
			{0, withdraw(failure), 0.9, false},
			{0, start(1), 1, true},
			{0, withdraw(failure), 0, true},
			{0, withdraw(failure), 0, false},
		}},
		{"the reserve needs no calls", 10, 0.3, []step{
			{0, look, 3, true},
			{0, withdraw(failure), 2, true},
			{1, withdraw(failure), 1, true},
			{2, withdraw(failure), 0, true},
			{9, withdraw(failure), 0, false},
			{10, look, 1, true},
			{12, look, 3, true},
		}},
		{"earnings last for ten slots", 100, 0, []step{
			{0.5, start(5), 5, true},
			{1.5, start(2), 7, true}, // the first call starts the slots, so this is slot 1
			{10.5, look, 2, true},
			{11.5, look, 0, true},
			{11.5, withdraw(failure), 0, false},
		}},
		{"a slot used again has forgotten what it held", 100, 0, []step{
			{0, start(5), 5, true},
			{0, withdraw(failure), 4, true},
			{10, start(1), 1, true},
			{10, withdraw(failure), 0, true},
			{20, start(1), 1, true},
			{1000, start(2), 2, true},
		}},
		{"a debt left by a burst is not shown", 100, 0, []step{
			{0, start(5), 5, true},
			{9, withdraw(failure), 4, true},
			{9, withdraw(failure), 3, true},
			{10, look, 0, true},
			{10, start(1), 0, true},
			{10, withdraw(failure), 0, false},
			{10, start(2), 1, true},
			{10, withdraw(failure), 0, true},
			{19, look, 2, true}, // the two of second 9 have expired, the three calls of second 10 have not
		}},
		{"after a timeout costs five", 10, 1, []step{
			{0, withdraw(timeout), 5, true},
			{0, withdraw(failure), 4, true},
			{0, withdraw(timeout), 4, false},
			{0, start(10), 5, true},
			{0, withdraw(timeout), 0, true},
		}},
		{"an unknown kind costs what a timeout does", 10, 1, []step{
			{0, withdraw(7), 5, true},
			{0, settle(0, true), 12.5, true},
		}},
		{"Finish and Fail earn nothing", 10, 1, []step{
			{0, finish(1, EventCallSucceeded), 10, true},
			{0, finish(1, EventCallFailed), 10, true},
			{0, fail, 10, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, ratio(t, c.percent, c.minPerSecond), c.steps)
		})
	}
}

// Returned tokens go to the slot of their charge, so that they never outlive it.
func TestRatioSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"an attempt that succeeds is free", []step{
			{0, withdraw(failure), 9, true},
			{3, settle(0, true), 10, true},
			{13, look, 10, true},
		}},
		{"an attempt that succeeds makes up for another one", []step{
			{0, withdraw(failure), 9, true},
			{0, withdraw(failure), 8, true},
			{3, settle(0, false), 8, true},
			{3, settle(1, true), 10, true},
			{3, withdraw(failure), 9, true},
			{3, settle(2, true), 10, true}, // nothing is saved
			{3, withdraw(timeout), 5, true},
			{3, settle(3, true), 12.5, true}, // its own bonus
		}},
		{"while few responses are fast, a failure costs what a timeout does", []step{
			{0, slow(failure), 5, true},
			{0, slow(timeout), 0, true},
			{0, slow(CauseUnsent), 0, true},
			{3, settle(0, true), 6, true},
			{3, settle(1, false), 6, true},
		}},
		{"a missed deadline costs what a timeout does, and makes no debt", []step{
			{0, missed, 5, true},
			{0, missed, 0, true},
			{0, missed, 0, true},
			{10, look, 10, true},
		}},
		{"after a timeout success earns a bonus, for one window from then", []step{
			{0, withdraw(timeout), 5, true},
			{3, settle(0, true), 12.5, true},
			{12, look, 12.5, true},
			{13, look, 10, true},
		}},
		{"a permit returned brings no bonus", []step{
			{0, withdraw(timeout), 5, true},
			{3, giveBack(0), 10, true},
		}},
		{"a charge that has expired is not given back twice", []step{
			{0, withdraw(timeout), 5, true},
			{0, withdraw(timeout), 0, true},
			{10, look, 10, true},
			{10, giveBack(0), 10, true},
			{11, settle(1, true), 12.5, true}, // the bonus still counts
			{20, look, 12.5, true},
			{21, look, 10, true},
		}},
		{"an old permit leaves what its slot now holds alone", []step{
			{0, withdraw(failure), 9, true},
			{10, withdraw(failure), 9, true},
			{10, giveBack(0), 9, true},
			{10, settle(1, true), 10, true},
		}},
		{"a permit returned twice earns nothing", []step{
			{0, withdraw(failure), 9, true},
			{0, giveBack(0), 10, true},
			{0, giveBack(0), 10, true},
		}},
		{"time that lags counts as the latest", []step{
			{5, withdraw(failure), 9, true},
			{8, withdraw(failure), 8, true},
			{6, withdraw(failure), 7, true}, // charged to second 8
			{14, look, 7, true},
			{17, look, 8, true},
			{18, look, 10, true},
		}},
		{"time before the first call counts as the first", []step{
			{5, withdraw(failure), 9, true},
			{-100, withdraw(failure), 8, true},
			{-100, giveBack(1), 9, true},
			{14, look, 9, true},
			{15, look, 10, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, ratio(t, 10, 1), c.steps)
		})
	}
}

// However calls and withdrawals interleave, grants add up to the earnings.
func TestRatioUnderStress(t *testing.T) {
	const calls = 301
	for range 5 {
		b := ratio(t, 33.3333, 1)
		var admitted, asked atomic.Int64
		withdraw := func(now time.Duration) bool {
			asked.Add(1)
			ok := granted(b, now)
			if ok {
				admitted.Add(1)
			}
			return ok
		}
		together(func(g int) {
			for i := range calls {
				now := at(float64((g+i)%10) + 0.5) // clocks that disagree within the window
				b.Start(now)
				withdraw(now)
			}
		})
		for withdraw(at(9.5)) { // the earnings of calls after the last refusal
		}
		// 64 · 301 = 19,264 calls of 0.333333, and ten: 6,431.327
		if got := admitted.Load(); got != 6431 {
			t.Errorf("%d admitted; want 6431", got)
		}
		if got := admitted.Load() + int64(b.Denied()); got != asked.Load() {
			t.Errorf("%d admitted and denied; want %d", got, asked.Load())
		}
	}
}

// The balance keeps its ratio to the earnings; spending counts for a whole window from the reload.
func TestRatioReload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"a permit from before gives nothing back", []step{
			{0, withdraw(timeout), 5, true},
			{0, withdraw(failure), 4, true},
			{1, reload(ratioConfig(10, 10, 10)), 40, true},
			{1, settle(0, true), 40, true}, // without a bonus
			{1, giveBack(1), 40, true},
			{11, look, 100, true},
		}},
		{"a permit from after gives back, were its clock behind", []step{
			{3, withdraw(failure), 9, true},
			{3, reload(ratioConfig(10, 10, 10)), 90, true},
			{2, withdraw(failure), 89, true},
			{4, giveBack(1), 90, true},
			{4, giveBack(0), 90, true},
		}},
		{"a debt leaves nothing, however much more is allowed", []step{
			{0, start(10), 11, true},
			{0, reload(ratioConfig(100, 0, 10)), 10, true}, // the reserve is gone
			{9, withdraw(timeout), 5, true},
			{10, look, 0, true}, // the calls expire, and five are owed
			{10, reload(ratioConfig(10, 1, 10)), 0, true},
			{11, reload(ratioConfig(10, 1e6, 10)), 0, true},
			{11, start(10), 1, true}, // it earns again
			{20, look, 1, true},
			{21, look, 1e7, true},
		}},
		{"calls count for no longer than a window, however often that changes", []step{
			{0, start(100), 20, true},
			{5, reload(ratioConfig(10, 1, 20)), 30, true},
			{15, reload(ratioConfig(10, 1, 10)), 10, true},
			{16, reload(ratioConfig(10, 1, 20)), 20, true},
		}},
		{"a longer window keeps what calls of the old one have earned", []step{
			{0, start(100), 20, true},
			{5, reload(ratioConfig(10, 1, 20)), 30, true},
			{18, look, 30, true},
			{19, look, 20, true}, // slots are 2 s wide now
		}},
		{"what was spent counts for a whole window", []step{
			{0, withdraw(timeout), 5, true},
			{5, reload(ratioConfig(10, 1, 20)), 10, true},
			{24, look, 10, true},
			{25, look, 20, true},
		}},
		{"a shorter window begins now", []step{
			{0, reload(ratioConfig(10, 1, 60)), 60, true},
			{0, withdraw(timeout), 55, true},
			{5, reload(ratioConfig(10, 1, 10)), 9.166666, true},
			{14, look, 9.166666, true},
			{15, look, 10, true},
		}},
		{"bonuses beyond what was spent end", []step{
			{0, withdraw(timeout), 5, true},
			{1, settle(0, true), 12.5, true},
			{2, withdraw(failure), 11.5, true},
			{5, reload(ratioConfig(10, 2, 10)), 20, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, ratio(t, 10, 1), c.steps)
		})
	}
}

// Calls fill the reserve of the default budget: at most 0.1 each, and at most 0.4 per second.
func TestRatio_Reserve(t *testing.T) {
	t.Parallel()
	reserve := func() kind {
		c := Default().(ratioSettings)
		c.Percent = 0.0001
		b, err := newKind(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, row := range map[string]struct {
		calls int
		every time.Duration
		least float64 // extra attempts that are granted in total
		most  float64
	}{
		"one call in ten seconds":  {100, 10 * time.Second, 4 + 9, 4 + 10},
		"ten calls a second":       {1000, 100 * time.Millisecond, 4 + 39, 4 + 40},
		"no call":                  {0, 0, 4, 4},
		"a hundred at once":        {100, 0, 4, 4},
		"one call in five minutes": {100, 5 * time.Minute, 4 + 9, 4 + 10},
	} {
		b, now, granted := reserve(), time.Duration(0), 0
		for spend := true; spend; {
			if _, spend = b.Withdraw(now, Charge{}); spend {
				granted++
			}
		}
		for range row.calls {
			now += row.every
			b.Start(now)
			for spend := true; spend; {
				if _, spend = b.Withdraw(now, Charge{}); spend {
					granted++
				}
			}
		}
		if got := float64(granted); got < row.least || got > row.most {
			t.Errorf("%s: %d extra attempts for %d calls; want %v to %v", name, granted, row.calls, row.least, row.most)
		}
	}
}

// The calls' earnings are spent first, and the reserve gets back what it has paid.
func TestRatio_ReserveIsLast(t *testing.T) {
	t.Parallel()
	b := made[*ratioBudget](t, Default())
	play(t, b, []step{
		{0, look, 4, true},
		{0, start(10), 5, true},
		{0, withdraw(failure), 4, true}, // 1 is earned
		{0, withdraw(timeout), 0, true}, // 4 from the reserve
		{0, withdraw(failure), 0, false},
		{8, look, 1, true},            // ten calls have added 1 by then
		{8, settle(1, true), 7, true}, // 4 are returned, of which 3 fit, and 3 are the bonus
		{8, withdraw(timeout), 3, true},
		{8, finish(1, EventCallFailed), 3, true},
	})
	play(t, made[*ratioBudget](t, Default()), []step{{0, start(20), 6, true}, {0, withdraw(failure), 5, true}, {0, missed, 1, true}, {0, missed, 0, true}, {0, missed, 0, true}})
}

// A reload leaves the same part of the reserve as of the earnings.
func TestRatio_ReserveIsScaled(t *testing.T) {
	t.Parallel()
	twice := Default().(ratioSettings)
	twice.Percent *= 2
	play(t, made[*ratioBudget](t, Default()), []step{
		{0, start(10), 5, true},
		{0, withdraw(failure), 4, true},
		{0, withdraw(failure), 3, true},
		{0, withdraw(failure), 2, true}, // of 5
		{0, reload(twice), 2.4, true},   // of 6
		{1, start(3), 3.3, true},        // the calls fill it by 0.1 each
		{2, look, 3.3, true},            // of 6.6
		{2, reload(ratioConfig(10, 0, 10)), 0.65, true},
		{2, start(10), 1.65, true},
		{100, look, 0, true}, // there is no reserve any more
	})
}

// A budget that had nothing to spend has spent nothing.
func TestRatio_ReserveIsNew(t *testing.T) {
	t.Parallel()
	play(t, ratio(t, 10, 0), []step{{0, reload(Default()), 4, true}})
}

// The capacity counts the earnings of 100 calls, 10, two bonuses of 3, and the reserve, 4.
func TestRatio_Capacity(t *testing.T) {
	t.Parallel()
	b := made[*ratioBudget](t, Default())
	play(t, b, []step{
		{0, start(100), 14, true},
		{0, withdraw(timeout), 10, true},
		{0, withdraw(timeout), 6, true},
		{1, settle(0, true), 13, true},
		{2, settle(1, true), 20, true},
	})
	if got := b.Capacity(at(2)); got != 20 {
		t.Errorf("capacity %v; want 20", got)
	}
}

// After ten idle minutes, the reserve of a client starts over.
func TestRatio_ReserveForgets(t *testing.T) {
	t.Parallel()
	b := made[*ratioBudget](t, Default())
	play(t, b, []step{
		{0, start(1), 4.1, true},
		{0, withdraw(timeout), 0.1, true},
		{300, look, 0.1, true},
	})
	if b.Fresh(t0 + 10*time.Minute - 1) {
		t.Error("what is missing is forgotten before ten minutes")
	}
	if later := t0 + 10*time.Minute; !b.Fresh(later) || b.Balance(later) != 4 {
		t.Errorf("balance %v after ten minutes; want 4, as of a new budget", b.Balance(later))
	}
}

// The balance before any call is the reserve, exactly at both ends of each bound.
func TestRatioConfigIsExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  RatioConfig
		balance float64 // after one call
	}{
		{RatioConfig{Percent: 0.0001, MinPerSecond: 0, Window: time.Second, TimeoutCost: 1, TimeoutBonus: 0}, 0.000001},
		{RatioConfig{Percent: 1000, MinPerSecond: 1e6, Window: time.Minute, TimeoutCost: 1000, TimeoutBonus: 1000}, 60_000_010},
		{RatioConfig{Percent: 33.3333, MinPerSecond: 0.0001, Window: 10 * time.Second, TimeoutCost: 1}, 0.334333},
		{RatioConfig{Percent: 0.57, MinPerSecond: 0.2999, Window: 1500 * time.Millisecond, TimeoutCost: 1}, 0.45555},
		{DefaultRatio(), 4.1},
	} {
		b := made[*ratioBudget](t, c.config)
		b.Start(at(0))
		if got := b.Balance(at(0)); got != c.balance {
			t.Errorf("%+v: balance %v; want %v", c.config, got, c.balance)
		}
	}
}
