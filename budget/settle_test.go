// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/stagger-go/stagger/budget"
)

// What is given back goes where it came from, so that it never outlives the charge.
func TestRatioGivesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rows []row
	}{
		{"an attempt that succeeds is free", []row{
			{0, withdraw(failure), 9, true},
			{3, refund(0), 10, true},
			{9, look, 10, true},
			{10, look, 10, true},
			{12, look, 10, true},
			{13, look, 10, true},
		}},
		{"after a timeout success earns a bonus, for one window from then", []row{
			{0, withdraw(timeout), 5, true},
			{3, refund(0), 12.5, true},
			{10, look, 12.5, true},
			{12, look, 12.5, true},
			{13, look, 10, true},
		}},
		{"a permit returned brings no bonus", []row{
			{0, withdraw(timeout), 5, true},
			{3, drop(0), 10, true},
			{0, withdraw(failure), 9, true},
			{3, drop(1), 10, true},
			{14, look, 10, true},
		}},
		{"a charge that has expired is not given back twice", []row{
			{0, withdraw(timeout), 5, true},
			{0, withdraw(timeout), 0, true},
			{9, look, 0, true},
			{10, look, 10, true},
			{10, drop(0), 10, true},
			{11, refund(1), 12.5, true}, // the bonus still counts
			{20, look, 12.5, true},
			{21, look, 10, true},
		}},
		{"an old permit leaves what its slot now holds alone", []row{
			{0, withdraw(failure), 9, true},
			{10, withdraw(failure), 9, true},
			{10, refund(0), 9, true},
			{10, drop(0), 9, true},
			{10, refund(1), 10, true},
		}},
		{"a permit returned twice earns nothing", []row{
			{0, withdraw(failure), 9, true},
			{0, drop(0), 10, true},
			{0, drop(0), 10, true},
		}},
		{"time that lags counts as the latest", []row{
			{5, withdraw(failure), 9, true},
			{8, withdraw(failure), 8, true},
			{6, withdraw(failure), 7, true}, // charged to second 8
			{14, look, 7, true},
			{15, look, 8, true},
			{17, look, 8, true},
			{18, look, 10, true},
		}},
		{"a late permit is given back where it was charged", []row{
			{0, withdraw(failure), 9, true},
			{8, withdraw(failure), 8, true},
			{6, withdraw(failure), 7, true},
			{9, drop(2), 8, true},
			{10, look, 9, true},
			{18, look, 10, true},
		}},
		{"a bonus from a time that lags lasts from the latest", []row{
			{0, withdraw(timeout), 5, true},
			{8, withdraw(failure), 4, true},
			{6, refund(0), 11.5, true},
			{17, look, 11.5, true},
			{18, look, 10, true},
		}},
		{"time before the first call counts as the first", []row{
			{5, withdraw(failure), 9, true},
			{-100, withdraw(failure), 8, true},
			{-100, drop(1), 9, true},
			{14, look, 9, true},
			{15, look, 10, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run(t, ratio(t, 10, 1), c.rows)
		})
	}
}

// A permit is a value: one that another budget gave, or nobody, cannot turn spending into earning.
func TestRatioForgedPermitEarnsNothing(t *testing.T) {
	t.Parallel()
	b := ratio(t, 10, 1)
	b.Start(at(0))
	for _, p := range []budget.Permit{{}, {At: at(0)}, {At: at(1e6)}, {Charge: charge(timeout), At: at(3)}} {
		b.Return(at(1), p)
		if got := b.Balance(at(1)); got != 10.1 {
			t.Errorf("after Return of %+v: balance %v; want 10.1", p, got)
		}
	}
}
