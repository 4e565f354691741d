// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/hooks/repeating"
)

// init lets package repeat make a Retrier send calls that have succeeded a second time.
func init() {
	repeating.Install = func(retrier any, repeats repeating.Repeater) {
		r, _ := retrier.(*Retrier)
		r.repeats = repeats
	}
}

// second returns a second call with the time, key and metadata of one that has succeeded, as of a retry; nil if it may not be made.
// Calls that serve a retry have none, since each service of a chain would double them.
func (c *call) second() *repeating.Call {
	if c.options.unknown || !c.isSafe() || inRetry(c.ctx) || c.forbids(c.mode()) != "" {
		return nil
	}
	s := &repeating.Call{
		Ctx: contextOfLater(context.WithoutCancel(c.ctx), 1, false), Conn: c.cc, Method: c.method, Name: c.entry.name,
		Options: append(slices.Clone(c.options.shared[optionsAdded:]), insideOption{}),
	}
	if deadline, limited := c.ctx.Deadline(); limited {
		s.Deadline = deadline.Add(clock.Now() - c.start)
	}
	return s
}
