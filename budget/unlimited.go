// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// Unlimited grants every extra attempt and counts nothing. Its balance and capacity are infinite.
var Unlimited Budget = unlimited{}

type unlimited struct{}

func (unlimited) Start(time.Duration)                {}
func (unlimited) Fail(time.Duration)                 {}
func (unlimited) Return(time.Duration, Permit)       {}
func (unlimited) Settle(time.Duration, Permit, bool) {}
func (unlimited) Finish(time.Duration, End)          {}

func (unlimited) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	return Permit{Kind: c.Kind, At: now}, true
}

func (unlimited) Balance(time.Duration) float64  { return math.Inf(1) }
func (unlimited) Capacity(time.Duration) float64 { return math.Inf(1) }
func (unlimited) Granted() uint64                { return 0 }
func (unlimited) Denied() uint64                 { return 0 }
