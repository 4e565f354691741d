// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/policy"
)

// ownTimes is how many attempts the time of a call is for, if its policy doesn't say when an attempt is slow.
const ownTimes = 4

// OwnTime returns how long an attempt may take before observers are told that it was slow: its per-attempt timeout or hedging delay, and
// without either a quarter of the call's time. It is Never if nothing says so. m may be nil; callTime is Never without a deadline.
func OwnTime(p *policy.Policy, m Method, callTime time.Duration) time.Duration {
	after, _ := SlowAfter(p, m, false)
	switch {
	case after > 0:
		return after
	case callTime == Never:
		return Never
	default:
		return callTime / ownTimes
	}
}

// outlasted reports whether an attempt has taken longer than its own time, without its first message.
func (c *Call) outlasted(a *attempt, at time.Duration) bool {
	callTime := Never
	if c.set.Deadline != Never {
		callTime = c.set.Deadline - c.began
	}
	own := OwnTime(c.set.Policy, c.set.Method, callTime)
	return a.slow || own != Never && a.took(at) > own
}

// EndedSlow reports whether the attempt of the last call of Ended had outlasted its own time when it ended, or when it had its first
// message.
func (c *Call) EndedSlow() bool { return c.endedSlow }
