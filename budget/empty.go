// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "time"

// Empty grants no extra attempt. It is one value for the whole process, and so is its count of
// denials.
var Empty Budget = new(empty)

type empty struct{ tally }

func (*empty) Start(time.Duration)                {}
func (*empty) Fail(time.Duration)                 {}
func (*empty) Return(time.Duration, Permit)       {}
func (*empty) Settle(time.Duration, Permit, bool) {}
func (*empty) Finish(time.Duration, End)          {}

func (e *empty) Withdraw(time.Duration, Charge) (Permit, bool) {
	e.denied.Add(1)
	return Permit{}, false
}

func (*empty) Balance(time.Duration) float64  { return 0 }
func (*empty) Capacity(time.Duration) float64 { return 0 }
