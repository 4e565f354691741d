// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// catchUp looks again for the policy of a call that began before its connection had received any service
// config; the first attempt has waited for it. It reports whether there is one.
func (c *call) catchUp() bool {
	if c.wishes&early == 0 {
		return false
	}
	c.wishes &^= early
	of, p, w := c.retrier.lookup(c.cc, c.method)
	if w&early != 0 {
		return false
	}
	if p == nil {
		p = c.retrier.single
	}
	c.policy = p
	c.state.InPlace = true // it was not begun as a race
	if b := c.retrier.payer(of, p, c.cc, c.method); b != c.gates.budget {
		b.Start(c.start)
		c.gates.budget = b
	}
	return true
}

// catchUp does so for a stream that has just been opened.
func (s *stream) catchUp() {
	if s.call.catchUp() {
		s.end = both(s.end, s.limit())
	}
}

func both(outer, inner context.CancelFunc) context.CancelFunc {
	if outer == nil {
		return inner
	}
	return func() {
		inner()
		outer()
	}
}

// delivered reports whether the rules come from a service config.
func (r *rules) delivered() bool { return r.file != nil }

// settle gives a balance that was there before the settings that were delivered, once: its tokens are
// scaled, and never refilled.
func (r *rules) settle(at place, b budget.Budget, spec policy.BudgetSpec) {
	if !r.delivered() {
		return
	}
	if _, done := r.settled.LoadOrStore(at, true); !done {
		_ = reload(b, budget.Now(), spec) // the settings have been checked
	}
}

// others reports whether the place has had a balance of another kind: that which takes its place begins with
// nothing.
func (b *budgets) others(at place) bool {
	own := at.kind
	for at.kind = range refund + 1 {
		if _, ok := b.table.Load(at); ok && at.kind != own {
			return true
		}
	}
	return false
}
