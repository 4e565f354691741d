// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// gates are a call as its policy sees it while it decides, at Call.asked.
type gates Call

func (c *Call) gates(at time.Duration) *gates {
	c.asked = at
	return (*gates)(c)
}

func (g *gates) call() *Call { return (*Call)(g) }

var _ policy.Gates = (*gates)(nil)

// Open implements [policy.Breaker]. Nothing may be sent either when nobody may send any more.
func (g *gates) Open() bool { return g.off != "" || g.set.Breaker != nil && g.set.Breaker.Open() }

// SlowEverywhere implements [policy.Answers].
func (g *gates) SlowEverywhere() bool {
	return g.set.LastAnswers != nil && g.call().slowLimit() > 0 && g.set.LastAnswers.Slow(g.asked)
}

// Overloaded implements [policy.Overload].
func (g *gates) Overloaded() bool {
	return g.set.Admission != nil && g.set.Admission.Queued(g.asked, g.call().left(g.asked))
}

// Enter implements [policy.WaitLimit]. A shadow does not wait.
func (g *gates) Enter() bool { return g.set.Observe || g.call().enter() }

// Leave implements [policy.WaitLimit].
func (g *gates) Leave() { g.call().leave() }

// Fail implements [policy.Budget].
func (g *gates) Fail() { g.set.Budget.Fail(g.asked) }

// Withdraw implements [policy.Budget]. A budget pays for the requests that a server sees: an attempt that
// never left this client hands its permit on, or, if it was the first, its free place.
func (g *gates) Withdraw(out *policy.Outcome, factor float64) bool {
	c := g.call()
	if c.spare.held {
		c.pending.permit, c.spare = c.spare, permit{}
		return true
	}
	charge := budget.Charge{Kind: budget.KindFailure, Factor: factor}
	switch {
	case out.TimedOut && c.set.Policy.Hedge() != nil:
		charge.Kind = budget.KindHedge
	case out.TimedOut:
		charge.Kind = budget.KindTimeout
	case out.Unsent:
		charge.Kind = budget.KindUnsent
	}
	p, held := c.set.Budget.Withdraw(g.asked, charge)
	c.pending.permit = permit{p, held}
	return held
}

// enter takes a wait slot, if the call holds none.
func (c *Call) enter() bool {
	if !c.slot {
		c.slot = c.set.Slots.Enter()
	}
	return c.slot
}

func (c *Call) leave() {
	if c.slot {
		c.slot = false
		c.set.Slots.Leave()
	}
}

// allowFirst asks the breaker for the first attempt, which admission has let through.
func (c *Call) allowFirst() (done func(error), err error) {
	allowed := false
	defer func() {
		if !allowed && c.set.Admission != nil {
			c.set.Admission.Leave()
		}
	}()
	done, err = c.allow()
	allowed = err == nil
	return done, err
}

// allow asks the breaker for leave to send.
func (c *Call) allow() (done func(error), err error) {
	if c.set.Breaker != nil {
		done, err = c.set.Breaker.Allow()
	}
	return done, err
}
