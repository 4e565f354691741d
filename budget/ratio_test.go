// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

const (
	failure = budget.KindFailure
	timeout = budget.KindTimeout
)

const t0 = 1_000_000 * time.Hour

// at is a time in seconds after t0.
func at(seconds float64) time.Duration {
	return t0 + time.Duration(seconds*float64(time.Second))
}

// ratio makes a budget of the default costs and window.
func ratio(tb testing.TB, percent, minPerSecond float64) *budget.Ratio {
	tb.Helper()
	c := budget.DefaultRatio()
	c.Percent, c.MinPerSecond = percent, minPerSecond
	b, err := budget.NewRatio(c)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Each ledger is read from top to bottom. Slots are 1 s wide.
func TestRatioLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		percent, minPerSecond float64
		rows                  []row
	}{
		{"calls earn their share", 10, 0, []row{
			{0, withdraw(failure), 0, false},
			{0, start(9), 0.9, true},
			{0, withdraw(failure), 0.9, false},
			{0, start(1), 1, true},
			{0, withdraw(failure), 0, true},
			{0, withdraw(failure), 0, false},
		}},
		{"the reserve needs no calls", 10, 0.3, []row{
			{0, look, 3, true},
			{0, withdraw(failure), 2, true},
			{1, withdraw(failure), 1, true},
			{2, withdraw(failure), 0, true},
			{9, withdraw(failure), 0, false},
			{10, look, 1, true},
			{11, look, 2, true},
			{12, look, 3, true},
			{500, look, 3, true},
		}},
		{"earnings last for ten slots", 100, 0, []row{
			{0.5, start(5), 5, true},
			{1.5, start(2), 7, true}, // slots begin with the first call, so this is slot 1
			{10.4, look, 7, true},
			{10.5, look, 2, true},
			{11.4, look, 2, true},
			{11.5, look, 0, true},
			{11.5, withdraw(failure), 0, false},
		}},
		{"a slot used again has forgotten what it held", 100, 0, []row{
			{0, start(5), 5, true},
			{0, withdraw(failure), 4, true},
			{10, start(1), 1, true},
			{10, withdraw(failure), 0, true},
			{20, start(1), 1, true},
			{1000, start(2), 2, true},
		}},
		{"a debt left by a burst is not shown", 100, 0, []row{
			{0, start(5), 5, true},
			{9, withdraw(failure), 4, true},
			{9, withdraw(failure), 3, true},
			{10, look, 0, true},
			{10, start(1), 0, true},
			{10, withdraw(failure), 0, false},
			{10, start(2), 1, true},
			{10, withdraw(failure), 0, true},
			{19, look, 2, true}, // the two of second 9 are gone, the three calls of second 10 are not
		}},
		{"after a timeout costs five", 10, 1, []row{
			{0, withdraw(timeout), 5, true},
			{0, withdraw(failure), 4, true},
			{0, withdraw(timeout), 4, false},
			{0, start(10), 5, true},
			{0, withdraw(timeout), 0, true},
		}},
		{"an unknown kind costs what a timeout does", 10, 1, []row{
			{0, withdraw(7), 5, true},
			{0, refund(0), 12.5, true},
		}},
		{"Finish and Fail earn nothing", 10, 1, []row{
			{0, func(b *book, now time.Duration) bool { b.Finish(now, budget.EndAtOnce); return true }, 10, true},
			{0, func(b *book, now time.Duration) bool { b.Finish(now, budget.EndFailed); return true }, 10, true},
			{0, func(b *book, now time.Duration) bool { b.Fail(now); return true }, 10, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run(t, ratio(t, c.percent, c.minPerSecond), c.rows)
		})
	}
}
