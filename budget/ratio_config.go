// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
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
	// no traffic, so that a client with few calls can retry at all. 0 to 1,000,000; 0 with Fleet.
	MinPerSecond float64
	// Window is how long earnings and spending count. 1s to 60s: a shorter one forgets the calls
	// that a slow failure belongs to, a longer one lets a quiet hour pay for a storm.
	Window time.Duration
	// TimeoutCost is what an extra attempt costs [KindTimeout], where one [KindFailure] costs 1.
	// 1 to 1000.
	TimeoutCost float64
	// TimeoutBonus is what an extra attempt after a timeout earns on top of its cost if it succeeds.
	// 0 to 1000. Such attempts sustain themselves while more than cost/(cost+bonus) of them succeed.
	TimeoutBonus float64
	// HedgeCost is what an extra attempt costs [KindHedge]: 1 to 1000; 0 is TimeoutCost, since servers work on both
	// just the same. If it succeeds it earns a bonus in the same proportion as TimeoutBonus is to TimeoutCost.
	HedgeCost float64
	// bucket has the reserve be a bucket that calls fill, in place of MinPerSecond: see [Default].
	bucket bool
	// Fleet is where the reserve comes from instead, if it has a name. See [NewFleetRatio].
	Fleet FleetConfig
}

// DefaultRatio is 10 %, 0.8 per second, a window of 5 s, and after timeouts a cost of 4 and a bonus of 3, which means
// that these sustain themselves while more than four of seven succeed: well below the three of four that do while one server
// of four hangs. What a client has without traffic, 4 in a window, pays for one attempt after a timeout. docs/overload.md shows what other numbers come to.
func DefaultRatio() RatioConfig {
	return RatioConfig{Percent: 10, MinPerSecond: 0.8, Window: 5 * time.Second, TimeoutCost: 4, TimeoutBonus: 3}
}

// Default is the budget of policies that name none: [DefaultRatio], but for its reserve. That is a bucket of 4, full at
// the start. Each call adds at most 0.3, and all together at most 0.4 a second. What calls have earned is spent first.
func Default() RatioConfig {
	c := DefaultRatio()
	c.MinPerSecond, c.bucket = 0, true
	return c
}

// Name implements [Config].
func (RatioConfig) Name() string { return "ratio" }

// Fields implements [Config].
func (c RatioConfig) Fields() []Field {
	return []Field{
		{Name: "Percent", Value: c.Percent, Low: 0.0001, High: 1000, Decimals: 4},
		{Name: "MinPerSecond", Value: c.MinPerSecond, Low: 0, High: 1e6, Decimals: 4},
		{Name: "Window", Value: c.Window.Seconds(), Low: 1, High: 60, Decimals: 9, Unit: "s"},
		{Name: "TimeoutCost", Value: c.TimeoutCost, Low: 1, High: 1000, Decimals: 4},
		{Name: "TimeoutBonus", Value: c.TimeoutBonus, Low: 0, High: 1000, Decimals: 4},
		{Name: "HedgeCost", Value: cmp.Or(c.HedgeCost, c.TimeoutCost), Low: 1, High: 1000, Decimals: 4},
	}
}

// Check implements [Config].
func (c RatioConfig) Check() error {
	fields := c.Fields()
	if c.HedgeCost == 0 { // else a bad TimeoutCost would be reported twice
		fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Name == "HedgeCost" })
	}
	err := check(fields)
	if c.Fleet == (FleetConfig{}) {
		return err
	}
	errs := []error{err, c.Fleet.check()}
	if c.MinPerSecond != 0 {
		errs = append(errs, &FieldError{
			Field: "MinPerSecond", Value: strconv.FormatFloat(c.MinPerSecond, 'f', -1, 64),
			Message: "must not stand beside a fleet, whose pool is the reserve",
		})
	}
	return flat(errs...)
}

func (c RatioConfig) budget() Reloadable { return newRatio(c) }

// ratioRates are a RatioConfig in micro-tokens. One token is an extra attempt of cost 1.
type ratioRates struct {
	share, reserve int64
	costs, bonuses prices
}

func (c RatioConfig) rates() ratioRates {
	// 128 bits, since a million a second for a minute in nanoseconds is more than 64 hold.
	high, low := bits.Mul64(uint64(micro(c.MinPerSecond)), uint64(c.Window)) // neither is negative
	reserve, _ := bits.Div64(high, low, uint64(time.Second))
	hedge := cmp.Or(c.HedgeCost, c.TimeoutCost)
	return ratioRates{
		share: micro(c.Percent) / 100, reserve: int64(reserve), // at most 6e13
		costs: prices{failure: micro(1), timeout: micro(c.TimeoutCost), hedge: micro(hedge)},
		bonuses: prices{
			timeout: micro(c.TimeoutBonus), hedge: int64(math.Round(float64(micro(c.TimeoutBonus)) * hedge / c.TimeoutCost)),
		},
	}
}
