// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

func configs() []Config {
	return []Config{
		DefaultRatio(), ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}, envoys,
	}
}

// The error has the field, its value and the allowed values.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	ratio := func(change func(*RatioConfig)) Config {
		c := DefaultRatio()
		change(&c)
		return c
	}
	throttle := func(most int, ratio float64) Config {
		return ThrottleConfig{MaxTokens: most, TokenRatio: ratio}
	}
	const tooSmall = ": must be at least 0.001, and finite"
	for _, c := range []struct {
		config Config
		want   string
	}{
		{ratio(func(c *RatioConfig) { c.Percent = 0 }), "budget: Percent 0: must be 0.0001 to 1000"},
		{ratio(func(c *RatioConfig) { c.Percent = 1000.0001 }), "budget: Percent 1000.0001: must be 0.0001 to 1000"},
		{ratio(func(c *RatioConfig) { c.Percent = math.NaN() }), "budget: Percent NaN: must be 0.0001 to 1000"},
		{ratio(func(c *RatioConfig) { c.Percent = math.Inf(1) }), "budget: Percent +Inf: must be 0.0001 to 1000"},
		{ratio(func(c *RatioConfig) { c.Percent = 33.33333 }), "budget: Percent 33.33333: must have at most 4 decimals, such as 33.3333"},
		{ratio(func(c *RatioConfig) { c.MinPerSecond = -0.1 }), "budget: MinPerSecond -0.1: must be 0 to 1000000"},
		{ratio(func(c *RatioConfig) { c.MinPerSecond = 1_000_001 }), "budget: MinPerSecond 1000001: must be 0 to 1000000"},
		{ratio(func(c *RatioConfig) { c.Window = 0 }), "budget: Window 0s: must be 1s to 60s"},
		{ratio(func(c *RatioConfig) { c.Window = time.Second - 1 }), "budget: Window 0.999999999s: must be 1s to 60s"},
		{ratio(func(c *RatioConfig) { c.Window = time.Minute + 1 }), "budget: Window 60.000000001s: must be 1s to 60s"},
		{ratio(func(c *RatioConfig) { c.TimeoutCost = 0.9999 }), "budget: TimeoutCost 0.9999: must be 1 to 1000"},
		{ratio(func(c *RatioConfig) { c.TimeoutCost = 1001 }), "budget: TimeoutCost 1001: must be 1 to 1000"},
		{ratio(func(c *RatioConfig) { c.TimeoutBonus = -1 }), "budget: TimeoutBonus -1: must be 0 to 1000"},
		{ratio(func(c *RatioConfig) { c.TimeoutBonus = 2.00005 }), "budget: TimeoutBonus 2.00005: must have at most 4 decimals, such as 2.0001"},
		{
			RatioConfig{MinPerSecond: -1, TimeoutBonus: -1},
			"budget: Percent 0: must be 0.0001 to 1000\n" +
				"budget: MinPerSecond -1: must be 0 to 1000000\n" +
				"budget: Window 0s: must be 1s to 60s\n" +
				"budget: TimeoutCost 0: must be 1 to 1000\n" +
				"budget: TimeoutBonus -1: must be 0 to 1000",
		},
		{throttle(0, 0.1), "budget: MaxTokens 0: must be a whole number from 1 to 1000"},
		{throttle(-1, 0.1), "budget: MaxTokens -1: must be a whole number from 1 to 1000"},
		{throttle(1001, 0.1), "budget: MaxTokens 1001: must be a whole number from 1 to 1000"},
		{throttle(10, 0), "budget: TokenRatio 0" + tooSmall},
		{throttle(10, -1), "budget: TokenRatio -1" + tooSmall},
		{throttle(10, 0.0009), "budget: TokenRatio 0.0009" + tooSmall},
		{throttle(10, math.NaN()), "budget: TokenRatio NaN" + tooSmall},
		{throttle(10, math.Inf(1)), "budget: TokenRatio +Inf" + tooSmall},
		{throttle(0, 0), "budget: MaxTokens 0: must be a whole number from 1 to 1000\nbudget: TokenRatio 0" + tooSmall},
		{
			ConcurrentConfig{Percent: math.NaN(), Min: -1},
			"budget: Percent NaN: must be 0.0001 to 1000\nbudget: Min -1: must be a whole number from 0 to 1000000",
		},
		{ConcurrentConfig{Percent: 20, Min: 1_000_001}, "budget: Min 1000001: must be a whole number from 0 to 1000000"},
	} {
		b, err := newKind(c.config)
		if err == nil || b != nil {
			t.Errorf("New(%+v) = %v, %v; want nil and an error", c.config, b, err)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("error\n%v; want\n%v", err, c.want)
		}
		wrong, ok := errors.AsType[*bounds.Error](err)
		if !ok || !reflect.ValueOf(c.config).FieldByName(wrong.Field).IsValid() {
			t.Errorf("%+v names no field of the config", wrong)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range configs() {
		b, err := newKind(c)
		if err != nil || b.Balance(t0) <= 0 {
			t.Errorf("New(%+v): %v, %v", c, b, err)
		}
	}
	for _, c := range []Config{RatioConfig{}, ThrottleConfig{}, ConcurrentConfig{}} {
		if b, err := newKind(c); err == nil {
			t.Errorf("%T: an empty config is taken, for %v", c, b)
		}
	}
}
