// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// Safe implements [attempts.Facts].
func (c *call) Safe() bool {
	switch {
	case c.flags&safe != 0:
		return true
	case c.key != "" && keyCounts(c.policy):
		return true
	default:
		return c.retrier.rules.Load().set.Safe(c.policy, c.method)
	}
}

// InRetry implements [attempts.Facts].
func (c *call) InRetry() bool { return inRetry(c.ctx) }

// TakeSlot implements [attempts.Slots].
func (c *call) TakeSlot() bool { return c.retrier.waitLimit.takeSlot(c.target()) }

// ReleaseSlot implements [attempts.Slots].
func (c *call) ReleaseSlot() { c.retrier.waitLimit.releaseSlot(c.target()) }

// Off implements [attempts.Facts]. A mode that has become stricter applies to the rest of the call.
func (c *call) Off() policy.Reason {
	began := c.options.mode
	if c.off {
		began = policy.ModeOff
	}
	reason := c.retrier.forbids(began, c.method)
	c.off = c.off || reason == policy.ReasonModeOff
	return reason
}

// mode returns the call's current mode.
func (c *call) mode() policy.Mode {
	if c.off {
		return policy.ModeOff
	}
	return c.options.mode
}

// reasonGone returns why the caller no longer waits for the answer, or "". A deadline counts as soon as it
// has passed: gRPC and the server apply it by their own clocks.
func (c *call) reasonGone(now attempts.Now) policy.Reason {
	if reason := c.contextGone(now); reason != "" || !closed(c.cc) {
		return reason
	}
	return policy.ReasonClosed
}

// contextGone is reasonGone without the connection.
func (c *call) contextGone(now attempts.Now) policy.Reason {
	deadline, limited := c.ctx.Deadline()
	switch err := c.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded), err == nil && limited && !now.Wall.Before(deadline):
		return policy.ReasonDeadlineExceeded
	case err != nil:
		return policy.ReasonCancelled
	default:
		return ""
	}
}

// waitsForReady reports whether gRPC lets attempts after the first wait for a connection.
func (c *call) waitsForReady() bool {
	_, limited := c.ctx.Deadline()
	_, says := c.saysWaitForReady()
	return limited && c.policy.WaitForReadyOnRetry() && !says
}

// saysWaitForReady returns the caller's WaitForReady option, if there is one. The last option applies.
func (c *call) saysWaitForReady() (waits, says bool) {
	for _, o := range slices.Backward(c.options.caller) {
		if o, ok := promoted(o).(grpc.FailFastCallOption); ok {
			return !o.FailFast, true
		}
	}
	return false, false
}

// closed reports whether the connection is closed.
func closed(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}
