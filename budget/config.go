// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
)

// Config is what a budget is made from: a [RatioConfig], [ThrottleConfig], [ConcurrentConfig] or
// [RefundConfig]. Fields are taken as they are, zeros too: start from a default and change what differs.
type Config interface{ inside() balance.Config }

// RatioConfig allows extra attempts up to a share of the calls, after Finagle's and Linkerd's retry
// budgets; that success gives the cost back is from the AWS SDKs.
//
//	balance = Percent of the calls + MinPerSecond · Window − what was spent
//
// all in the last Window, which slides by tenths. An extra attempt is granted if the balance covers
// its cost: 1 for [KindFailure], TimeoutCost for [KindTimeout], HedgeCost for [KindHedge], nothing for [KindUnsent].
// If it helps, the cost is given back, and for the dear kinds a bonus on top. So extra attempts that
// help are nearly free, as when one backend of many is broken, and those that don't help dry up, as in an
// overload. The numbers have at most four decimals, which the budget keeps exactly.
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
	// TimeoutCost is what an extra attempt costs [KindTimeout], where one [KindFailure] costs 1.
	// 1 to 1000.
	TimeoutCost float64
	// TimeoutBonus is what an extra attempt after a timeout earns on top of its cost if it succeeds.
	// 0 to 1000. Such attempts sustain themselves while more than cost/(cost+bonus) of them succeed.
	TimeoutBonus float64
	// HedgeCost is what an extra attempt costs [KindHedge]: 1 to 1000; 0 is TimeoutCost, since servers work on both
	// just the same. If it succeeds it earns a bonus in the same proportion as TimeoutBonus is to TimeoutCost.
	HedgeCost float64
	// Fleet is the name of a pool: 1 to 64 letters, digits, '-', '_' and '.'. All Retriers that name it share one reserve,
	// and MinPerSecond, more than 0, is what the pool grants all of them together. See [Fleet]. "" is no pool.
	Fleet string
}

// DefaultRatio is 10 %, 0.8 per second, a window of 5 s, and after timeouts a cost of 4 and a bonus of 3, which means
// that these sustain themselves while more than four of seven succeed: well below the three of four that do while one server
// of four hangs. What a client has without traffic, 4 in a window, pays for one attempt after a timeout. docs/overload.md
// shows what other numbers come to.
func DefaultRatio() RatioConfig { return RatioConfig(balance.DefaultRatio()) }

func (c RatioConfig) inside() balance.Config { return balance.RatioConfig(c) }

// ThrottleConfig is retryThrottling of gRPC's service config (gRFC A6): an attempt that fails takes a token, a call that
// succeeds adds TokenRatio, and extra attempts are granted while the bucket is more than half full.
// They cost nothing, and so nothing is given back. Neither time nor kind matters, except that [KindUnsent] is always granted.
type ThrottleConfig struct {
	// MaxTokens is what the bucket holds, and starts with. 1 to 1000 (gRFC A6).
	MaxTokens int
	// TokenRatio is what a call that succeeds adds. At least 0.001, and finite; decimals beyond the
	// third are dropped, as gRFC A6 says: 0.5466 is 0.546.
	TokenRatio float64
}

func (c ThrottleConfig) inside() balance.Config { return balance.ThrottleConfig(c) }

// ConcurrentConfig allows so many extra attempts in flight at a time, after Envoy's retry budgets:
//
//	extra attempts in flight ≤ max(Min, Percent of the calls in flight)
//
// An extra attempt is in flight from its withdrawal, so while it waits too, until it is settled; a call from its start to
// its end. It bounds what a service must hold at a time, not what arrives: where failures are fast, many extra attempts pass
// one after the other, and where backoffs are long the calls that wait count as calls in flight and so allow more of them.
// Kind and factor of a charge, and the time, do not matter.
type ConcurrentConfig struct {
	// Percent of the calls in flight that may have an extra attempt in flight. More than 0, at most
	// 1000, with at most four decimals, which the budget keeps exactly.
	Percent float64
	// Min is how many extra attempts may be in flight however few calls are. 0 to 1,000,000.
	Min int
}

// DefaultConcurrent is 20 % and 3: Envoy's numbers.
func DefaultConcurrent() ConcurrentConfig { return ConcurrentConfig(balance.DefaultConcurrent()) }

func (c ConcurrentConfig) inside() balance.Config { return balance.ConcurrentConfig(c) }

// RefundConfig is the token bucket of the AWS SDKs: an extra attempt takes its cost, and gives it back if it
// helped; a call that succeeds at once adds Success. It starts full, so a client may retry Capacity /
// RetryCost times before anything was earned, and then one time for so many calls that succeed. An
// outage that has emptied it stays without retries, since nothing succeeds. [KindUnsent] is free, and the
// time does not matter. Tokens have at most three decimals, which the budget keeps exactly.
type RefundConfig struct {
	Capacity    float64 // what the bucket holds, and starts with. 1 to 1,000,000
	RetryCost   float64 // of an extra attempt, except after a timeout. 0.001 to Capacity
	TimeoutCost float64 // of an extra attempt after a timeout. 0.001 to Capacity
	Success     float64 // what a call earns that succeeds at once. 0 to Capacity
}

// DefaultRefund is 500, 5, 10 and 1: the numbers of the AWS SDKs.
func DefaultRefund() RefundConfig { return RefundConfig(balance.DefaultRefund()) }

func (c RefundConfig) inside() balance.Config { return balance.RefundConfig(c) }

// inside is what the inside calls a config.
func inside(c Config) balance.Config {
	if c == nil {
		return balance.Default()
	}
	return c.inside()
}
