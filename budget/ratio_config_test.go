// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// The balance before any call is the reserve: exact at both ends of each bound.
func TestRatioConfigIsExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  budget.RatioConfig
		balance float64 // after one call
	}{
		{budget.RatioConfig{Percent: 0.0001, MinPerSecond: 0, Window: time.Second, TimeoutCost: 1, TimeoutBonus: 0}, 0.000001},
		{budget.RatioConfig{Percent: 1000, MinPerSecond: 1e6, Window: time.Minute, TimeoutCost: 1000, TimeoutBonus: 1000}, 60_000_010},
		{budget.RatioConfig{Percent: 33.3333, MinPerSecond: 0.0001, Window: 10 * time.Second, TimeoutCost: 1}, 0.334333},
		{budget.RatioConfig{Percent: 0.57, MinPerSecond: 0.2999, Window: 1500 * time.Millisecond, TimeoutCost: 1}, 0.45555},
		{budget.DefaultRatio(), 4.1},
	} {
		b, err := budget.NewRatio(c.config)
		if err != nil {
			t.Errorf("NewRatio(%+v): %v", c.config, err)
			continue
		}
		b.Start(at(0))
		if got := b.Balance(at(0)); got != c.balance {
			t.Errorf("%+v: balance %v; want %v", c.config, got, c.balance)
		}
	}
}
