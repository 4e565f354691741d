// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// RatioConfig is what a [Ratio] is made from. The fields are taken as they are, zeros too: start
// from [DefaultRatio] and change what differs.
//
// The numbers have at most four decimals, which the budget keeps exactly.
type RatioConfig struct {
	// Percent of one extra attempt that each call earns: 10 allows one extra attempt for ten calls.
	// More than 0 and at most 1000.
	Percent float64
	// MinPerSecond is the reserve: extra attempts per second, averaged over the window, that need
	// no traffic, so that a client with few calls can retry at all. 0 to 1,000,000.
	MinPerSecond float64
	// Window is how long earnings and spending count. 1s to 60s: a shorter one forgets the calls
	// that a slow failure belongs to, a longer one lets a quiet hour pay for a storm.
	Window time.Duration
	// TimeoutCost is what an extra attempt of [KindTimeout] costs, where one of [KindFailure] costs 1.
	// 1 to 1000.
	TimeoutCost float64
	// TimeoutBonus is what an extra attempt after a timeout earns on top of its cost if it succeeds.
	// 0 to 1000. Such attempts sustain themselves while more than cost/(cost+bonus) of them succeed.
	TimeoutBonus float64
}

// DefaultRatio is 10 %, 1 per second, a window of 10 s, and after timeouts a cost of 5 and a bonus
// of 2.5, which means that these sustain themselves while more than two thirds succeed.
func DefaultRatio() RatioConfig {
	return RatioConfig{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 5, TimeoutBonus: 2.5}
}

// check lists every field that is out of bounds.
func (c RatioConfig) check() error {
	var window error
	if c.Window < time.Second || c.Window > time.Minute {
		window = fmt.Errorf("budget: Window %v: must be 1s to 60s", c.Window)
	}
	return errors.Join(
		checkNumber("Percent", c.Percent, 0.0001, 1000, 4),
		checkNumber("MinPerSecond", c.MinPerSecond, 0, 1e6, 4),
		window,
		checkNumber("TimeoutCost", c.TimeoutCost, 1, 1000, 4),
		checkNumber("TimeoutBonus", c.TimeoutBonus, 0, 1000, 4),
	)
}

// checkNumber wants so many decimals at most: budgets count in whole parts of a token, and nothing may
// be rounded in silence.
func checkNumber(field string, v, low, high float64, decimals int) error {
	scale := math.Pow10(decimals)
	rounded := math.Round(v*scale) / scale
	switch {
	case !(v >= low && v <= high): // NaN too
		return fmt.Errorf("budget: %s %v: must be %v to %v", field, v, low, high)
	case rounded != v:
		return fmt.Errorf("budget: %s %v: must have at most %s decimals, such as %v", field, v, []string{3: "three", 4: "four"}[decimals], rounded)
	}
	return nil
}

// rates are a RatioConfig in micro-tokens.
type rates struct {
	share, reserve, timeoutCost, timeoutBonus int64
}

func (c RatioConfig) rates() rates {
	return rates{
		share: micro(c.Percent) / 100, reserve: c.reserve(),
		timeoutCost: micro(c.TimeoutCost), timeoutBonus: micro(c.TimeoutBonus),
	}
}

func (r rates) cost(c Charge) int64 {
	switch c.Kind {
	case KindUnsent:
		return 0
	case KindFailure, KindHedge:
		return c.of(token)
	default:
		return c.of(r.timeoutCost)
	}
}

// token is one extra attempt of cost 1, in micro-tokens: the unit in which a [Ratio] counts.
const token = 1_000_000

// micro converts tokens with at most four decimals, exactly.
func micro(tokens float64) int64 {
	return int64(math.Round(tokens*1e4)) * (token / 1e4)
}

// reserve is MinPerSecond over the window in micro-tokens, computed in 128 bits: a million a
// second for a minute in nanoseconds is more than 64 hold.
func (c RatioConfig) reserve() int64 {
	high, low := bits.Mul64(uint64(micro(c.MinPerSecond)), uint64(c.Window)) //nolint:gosec // checked: neither is negative
	whole, _ := bits.Div64(high, low, uint64(time.Second))
	return int64(whole) //nolint:gosec // at most 6e13
}
