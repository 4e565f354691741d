// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/policy"
)

// retryAfter returns how long a caller should wait before it repeats a failed call, or 0 if it must not: the call may have
// taken effect, the server has forbidden it, or another call would also fail.
func (c *Call) retryAfter(now Now) time.Duration {
	if !mayFollow(c.reason) || c.stopped || c.worked && !c.set.Facts.Safe() {
		return 0
	}
	wait := max(c.floor-now.At, 0) // the server's pushback
	if wait == 0 {
		wait = c.longestBackoff(now.Chance)
	}
	if c.set.Budget != nil {
		refill := balance.Refill(c.set.Budget, now.At, balance.Charge{Kind: balance.KindFailure})
		wait = max(wait, later(refill, time.Duration(now.Chance*float64(refill)/4)))
	}
	return wait
}

// longestBackoff returns half to all of the policy's longest backoff.
func (c *Call) longestBackoff(chance float64) time.Duration {
	longest := policy.DefaultRetry().Backoff.Max
	if p := c.set.Policy; p != nil && p.Backoff().Max > 0 {
		longest = p.Backoff().Max
	}
	return max(longest/2+time.Duration(chance*float64(longest)/2), 1)
}

// mayFollow reports whether another call may follow one that has ended for this reason.
func mayFollow(reason policy.Reason) bool {
	switch reason {
	case policy.ReasonAttemptsExhausted, policy.ReasonPushbackStop, policy.ReasonBreakerOpen, policy.ReasonLatencyUnknown,
		policy.ReasonSlowEverywhere, policy.ReasonOverloaded, policy.ReasonDeadlineTooClose, policy.ReasonTooManyWaiting,
		policy.ReasonBudgetExhausted, policy.ReasonDeadlineExceeded, policy.ReasonNotConnected:
		return true
	default: // non_retryable, committed, not_idempotent; chain_stop, mode_off: others decide; cancelled, closed: the caller has left
		return false
	}
}
