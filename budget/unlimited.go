// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// Unlimited grants every extra attempt and counts nothing. Its balance is infinite.
var Unlimited Budget = unlimited{}

type unlimited struct{}

func (unlimited) Start(time.Time)          {}
func (unlimited) Fail(time.Time)           {}
func (unlimited) Return(time.Time, Permit) {}
func (unlimited) Refund(time.Time, Permit) {}
func (unlimited) Finish(time.Time, bool)   {}

func (unlimited) Withdraw(now time.Time, k Kind) (Permit, bool) {
	return Permit{Kind: k, At: now}, true
}

func (unlimited) Balance(time.Time) float64 { return math.Inf(1) }
func (unlimited) Denied() uint64            { return 0 }
