// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "github.com/stagger-go/stagger/internal/balance"

// Config is the config of a budget: a [RatioConfig], [ThrottleConfig] or [ConcurrentConfig]. All fields count,
// even zeros: set all of them, or start from [DefaultRatio].
type Config = balance.Config

// RatioConfig allows extra attempts up to a share of the calls, like the retry budgets of Finagle and Linkerd. Returning the
// cost after a success is from the AWS SDKs.
//
//	balance = Percent of the calls + MinPerSecond · Window − what was spent
//
// all in the last Window, which slides by tenths. An extra attempt is granted if the balance covers its cost: 1 for
// [KindFailure], TimeoutCost for [KindTimeout], HedgeCost for [KindHedge], 0 for [KindUnsent]. If it helps, the cost is
// returned, plus a bonus for timeouts and hedges. So extra attempts that help are nearly free, as when one backend of many is
// broken, and those that don't help dry up, as in an overload. The numbers have at most four decimals, which the budget keeps
// exactly.
type RatioConfig = balance.RatioConfig

// DefaultRatio returns 10 %, 0.8 per second, a window of 5 s, and for timeouts a cost of 4 and a bonus of 3. So attempts after
// timeouts sustain themselves while more than four of seven succeed. While one of four servers hangs, three of four do. Without
// traffic, the reserve of 4 per window pays for one attempt after a timeout. docs/evidence/overload.md
// has the effects of other numbers.
func DefaultRatio() RatioConfig { return balance.DefaultRatio() }

// ThrottleConfig is retryThrottling of gRPC's service config (gRFC A6): a failed attempt takes a token, a successful call adds
// TokenRatio, and extra attempts are granted while the bucket is more than half full. They cost nothing, so nothing is
// returned. Time and kind don't matter, except that [KindUnsent] is always granted.
type ThrottleConfig = balance.ThrottleConfig

// ConcurrentConfig limits the extra attempts in flight, like Envoy's retry budgets:
//
//	extra attempts in flight ≤ max(Min, Percent of the calls in flight)
//
// An extra attempt is in flight from its withdrawal, so also while it waits, until it is settled; a call from its start to its
// end. It limits how much a service works on at a time, not the rate: if failures are fast, many extra attempts pass one after
// the other, and if backoffs are long, waiting calls count as in flight and so allow more of them. Time, and the kind and
// factor of a withdrawal, don't matter.
//
// Envoy's numbers are 20 % and 3. A policy file has them as defaults.
type ConcurrentConfig = balance.ConcurrentConfig
