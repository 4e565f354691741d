// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// The error says which field, what stands there, and what may.
func TestNewRatioNamesEveryBadField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*budget.RatioConfig)
		want   string
	}{
		{"percent zero", func(c *budget.RatioConfig) { c.Percent = 0 }, "budget: Percent 0: must be 0.0001 to 1000"},
		{"percent above", func(c *budget.RatioConfig) { c.Percent = 1000.0001 }, "budget: Percent 1000.0001: must be 0.0001 to 1000"},
		{"percent no number", func(c *budget.RatioConfig) { c.Percent = math.NaN() }, "budget: Percent NaN: must be 0.0001 to 1000"},
		{"percent infinite", func(c *budget.RatioConfig) { c.Percent = math.Inf(1) }, "budget: Percent +Inf: must be 0.0001 to 1000"},
		{
			"percent too fine", func(c *budget.RatioConfig) { c.Percent = 33.33333 },
			"budget: Percent 33.33333: must have at most four decimals, such as 33.3333",
		},
		{"reserve negative", func(c *budget.RatioConfig) { c.MinPerSecond = -0.1 }, "budget: MinPerSecond -0.1: must be 0 to 1e+06"},
		{"reserve above", func(c *budget.RatioConfig) { c.MinPerSecond = 1_000_001 }, "budget: MinPerSecond 1.000001e+06: must be 0 to 1e+06"},
		{"window zero", func(c *budget.RatioConfig) { c.Window = 0 }, "budget: Window 0s: must be 1s to 60s"},
		{"window short", func(c *budget.RatioConfig) { c.Window = time.Second - 1 }, "budget: Window 999.999999ms: must be 1s to 60s"},
		{"window long", func(c *budget.RatioConfig) { c.Window = time.Minute + 1 }, "budget: Window 1m0.000000001s: must be 1s to 60s"},
		{"cost below", func(c *budget.RatioConfig) { c.TimeoutCost = 0.9999 }, "budget: TimeoutCost 0.9999: must be 1 to 1000"},
		{"cost above", func(c *budget.RatioConfig) { c.TimeoutCost = 1001 }, "budget: TimeoutCost 1001: must be 1 to 1000"},
		{"bonus negative", func(c *budget.RatioConfig) { c.TimeoutBonus = -1 }, "budget: TimeoutBonus -1: must be 0 to 1000"},
		{
			"bonus too fine", func(c *budget.RatioConfig) { c.TimeoutBonus = 2.00005 },
			"budget: TimeoutBonus 2.00005: must have at most four decimals, such as 2.0001",
		},
		{
			"all", func(c *budget.RatioConfig) { *c = budget.RatioConfig{MinPerSecond: -1, TimeoutBonus: -1} },
			"budget: Percent 0: must be 0.0001 to 1000\n" +
				"budget: MinPerSecond -1: must be 0 to 1e+06\n" +
				"budget: Window 0s: must be 1s to 60s\n" +
				"budget: TimeoutCost 0: must be 1 to 1000\n" +
				"budget: TimeoutBonus -1: must be 0 to 1000",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := budget.DefaultRatio()
			c.change(&config)
			b, err := budget.NewRatio(config)
			if err == nil || b != nil {
				t.Fatalf("NewRatio = %v, %v; want nil and an error", b, err)
			}
			if err.Error() != c.want {
				t.Errorf("error\n%v; want\n%v", err, c.want)
			}
		})
	}
}

// The balance before any call is the reserve: exact at both ends of each bound.
func TestNewRatioTakesItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  budget.RatioConfig
		balance float64 // after one call
	}{
		{budget.RatioConfig{Percent: 0.0001, MinPerSecond: 0, Window: time.Second, TimeoutCost: 1, TimeoutBonus: 0}, 0.000001},
		{budget.RatioConfig{Percent: 1000, MinPerSecond: 1e6, Window: time.Minute, TimeoutCost: 1000, TimeoutBonus: 1000}, 60_000_010},
		{budget.RatioConfig{Percent: 33.3333, MinPerSecond: 0.0001, Window: 10 * time.Second, TimeoutCost: 1}, 0.334333},
		{budget.RatioConfig{Percent: 0.57, MinPerSecond: 0.2999, Window: 1500 * time.Millisecond, TimeoutCost: 1}, 0.45555},
		{budget.DefaultRatio(), 10.1},
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
