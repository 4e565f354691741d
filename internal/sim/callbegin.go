// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/budget"
)

// begin prepares a call, of a client or of a request that it is made for.
func (l *link) begin(client int, parent *attempt, before time.Duration) *call {
	now := l.world.now
	c := &call{link: l, parent: parent, start: now, deadline: before}
	for _, limit := range [...]time.Duration{l.spec.Deadline, l.policy.Spec().Timeout} {
		if limit > 0 {
			c.deadline = min(c.deadline, now+limit)
		}
	}
	c.world, c.client, c.budget, c.kind = l.world, client, l.payer(client), budget.KindTimeout
	if l.policy.Hedge() != nil {
		c.kind = budget.KindHedge
	}
	c.process = &l.processes.list[client]
	c.process.most = l.room
	c.state.MaxAttempts = l.attempts
	c.state.Safe = l.safe
	c.state.InRetry = parent != nil && parent.number > 1
	return c
}
