// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math/bits"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// RatioConfig allows extra attempts up to a share of the calls, like the retry budgets of Finagle and Linkerd. Returning the
// cost after a success is from the AWS SDKs.
//
//	balance = Percent of the calls + MinPerSecond · Window − what was spent
//
// all in the last Window, which slides by tenths. An extra attempt is granted if the balance covers its cost: 1 for
// [CauseFailure], TimeoutCost for [CauseTimeout] or if [Charge].Slow, 0 for [CauseUnsent]. If it helps, the cost is returned, plus a
// bonus: TimeoutBonus for CauseTimeout, and up to 1 for CauseFailure, to make up for what others have spent. A missed
// deadline ([EventDeadlineMissed]) costs TimeoutCost, as far as there is a balance. So extra attempts that help are nearly free, as
// when one backend of many is broken, and those that don't help dry up, as in an overload. The numbers have at most four decimals,
// which the budget keeps exactly.
type RatioConfig struct {
	// Percent of an extra attempt that each call earns: 10 allows one extra attempt per ten calls. More than 0 and at most
	// 1000.
	Percent float64
	// MinPerSecond is the reserve: extra attempts per second, averaged over the window, independent of traffic, so that a
	// client with few calls can retry at all. 0 to 1,000,000.
	MinPerSecond float64
	// Window is how long earnings and spending count, 1s to 60s. A shorter one forgets the calls of a slow failure; a longer
	// one lets a quiet hour pay for a storm.
	Window time.Duration
	// TimeoutCost is the cost of an extra attempt of [CauseTimeout], and of one after a failure while fewer than two of the target's
	// last responses were fast. Otherwise that costs 1. 1 to 1000.
	TimeoutCost float64
	// TimeoutBonus is the bonus, beyond its cost, of an extra attempt after a timeout that succeeds. 0 to 1000. Such attempts
	// sustain themselves while more than cost/(cost+bonus) of them succeed.
	TimeoutBonus float64
}

// ratioSettings are the settings of a ratio budget.
type ratioSettings struct {
	RatioConfig

	bucket bool // the reserve is a bucket that calls fill, instead of MinPerSecond
}

// settingsOf checks and returns the settings of a config.
func settingsOf(c Config) (ratioSettings, error) {
	if own, ok := c.(ratioSettings); ok {
		return own, own.check()
	}
	own, err := checked[RatioConfig](c)
	return ratioSettings{RatioConfig: own}, err
}

// DefaultRatio returns 10 %, 0.8 per second, a window of 5 s, and for timeouts a cost of 4 and a bonus of 3. So attempts after
// timeouts sustain themselves while more than four of seven succeed. While one of four servers hangs, three of four do. Without
// traffic, the reserve of 4 per window pays for one attempt after a timeout. docs/evidence/overload.md
// has the effects of other numbers.
func DefaultRatio() RatioConfig {
	return RatioConfig{Percent: 10, MinPerSecond: 0.8, Window: 5 * time.Second, TimeoutCost: 4, TimeoutBonus: 3}
}

// Default returns the config of the default budget, that of policies without one: [DefaultRatio] with another reserve, a bucket of 4 that is full at the start. Each call
// adds its share again, and all calls together at most 0.4 per second. The calls' earnings are spent first.
func Default() Config {
	c := DefaultRatio()
	c.MinPerSecond = 0
	return ratioSettings{c, true}
}

func (c RatioConfig) fields() []bounds.Field {
	return []bounds.Field{
		{Name: "Percent", Value: c.Percent, Low: 0.0001, High: 1000, Decimals: 4},
		{Name: "MinPerSecond", Value: c.MinPerSecond, Low: 0, High: 1e6, Decimals: 4},
		{Name: "Window", Value: c.Window.Seconds(), Low: 1, High: 60, Decimals: 9, Unit: "s"},
		{Name: "TimeoutCost", Value: c.TimeoutCost, Low: 1, High: 1000, Decimals: 4},
		{Name: "TimeoutBonus", Value: c.TimeoutBonus, Low: 0, High: 1000, Decimals: 4},
	}
}

func (c RatioConfig) check() error { return bounds.Check(c.fields()) }

func (c RatioConfig) budget() kind { return ratioSettings{RatioConfig: c}.budget() }

// ratioRates are a RatioConfig in micro-tokens. One token is an extra attempt of cost 1.
type ratioRates struct {
	share, reserve int64
	costs, bonuses prices
}

func (c RatioConfig) rates() ratioRates {
	// 128 bits: a million per second for a minute, in nanoseconds, exceeds 64.
	high, low := bits.Mul64(uint64(micro(c.MinPerSecond)), uint64(c.Window)) // neither is negative
	reserve, _ := bits.Div64(high, low, uint64(time.Second))
	return ratioRates{
		share: micro(c.Percent) / 100, reserve: int64(reserve), // at most 6e13
		costs:   prices{failure: micro(1), timeout: micro(c.TimeoutCost)},
		bonuses: prices{timeout: micro(c.TimeoutBonus)},
	}
}
