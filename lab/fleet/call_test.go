// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// took is the service's time for a request, however the call ends.
const took = 10 * time.Millisecond

// call is one call. Like the interceptor, it drives the engine, in virtual time.
type call struct {
	world  *world
	engine attempts.Call
	into   *count // where it counts
	timer  int    // number of the event that
}

// begin makes the first attempt.
func (w *world) begin(c *client, into *count) {
	own := &call{world: w, into: into}
	own.do(own.engine.Start(&attempts.Settings{
		Policy: w.policy, Deadline: attempts.Never, Facts: own, Slots: own, Budget: w.budgetOf(c),
	}, w.seen()))
}

// Safe implements [attempts.Facts].
func (*call) Safe() bool { return true }

// InRetry implements [attempts.Facts].
func (*call) InRetry() bool { return false }

// Off implements [attempts.Facts].
func (*call) Off() policy.Reason { return "" }

// ConnectWait implements [attempts.Facts].
func (*call) ConnectWait() (none attempts.ConnectWait) { return none }

// TakeSlot implements [attempts.Slots].
func (*call) TakeSlot() bool { return true }

// ReleaseSlot implements [attempts.Slots].
func (*call) ReleaseSlot() {}

// do carries out a step. Attempts never run in parallel, so none is cancelled.
func (c *call) do(step attempts.Step) {
	w := c.world
	c.timer++
	if number := c.timer; step.Wake != attempts.Never {
		w.at(max(step.Wake, w.now), func() {
			if number == c.timer {
				c.do(c.engine.Wake(w.seen()))
			}
		})
	}
	if step.Send != 0 {
		w.after(took, func() { c.ended(step.Send) })
	}
	if step.Over {
		end := c.engine.End()
		c.into.add(end.Attempts, end.Err == nil)
	}
}

var unavailable = status.New(codes.Unavailable, "fault")

// ended reports how an attempt ended.
func (c *call) ended(n int) {
	var r attempts.Result
	if c.world.fails() {
		r.Status, r.Err = unavailable, unavailable.Err()
	}
	c.do(c.engine.Ended(n, r, c.world.seen()))
}
