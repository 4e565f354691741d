// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// gates are what [policy.Policy.Decide] asks on behalf of one call, and what the call holds of them. They do
// the same as the interceptor's, without its locks.
type gates struct {
	world   *world
	budget  budget.Budget
	process *process
	client  int
	permit  budget.Permit // for the attempt that is to follow
	kind    budget.Kind   // what an attempt beside a slow one is charged as
	held    bool          // permit is there
	inside  bool          // it has a place among the calls that wait
}

var _ policy.Gates = (*gates)(nil)

// Open implements [policy.Breaker]: there is none.
func (*gates) Open() bool { return false }

// Enter implements [policy.WaitLimit].
func (g *gates) Enter() bool {
	switch {
	case g.inside:
		return true
	case g.process.waiting >= g.process.most:
		return false
	}
	g.process.waiting++
	g.inside = true
	return true
}

// Leave implements [policy.WaitLimit].
func (g *gates) Leave() {
	if g.inside {
		g.process.waiting--
		g.inside = false
	}
}

// Fail implements [policy.Budget].
func (g *gates) Fail() { g.budget.Fail(g.world.now) }

// Withdraw implements [policy.Budget].
func (g *gates) Withdraw(out *policy.Outcome, factor float64) bool {
	charge := budget.Charge{Kind: budget.KindFailure, Factor: factor}
	if out.TimedOut {
		charge.Kind = g.kind
	}
	g.permit, g.held = g.budget.Withdraw(g.world.now, charge)
	return g.held
}

// equip gives an attempt what was got for it, now that it is sent: the wait is over.
func (g *gates) equip(a *attempt) {
	g.Leave()
	a.permit, a.held = g.permit, g.held
	g.permit, g.held = budget.Permit{}, false
}

// giveBack lets go of what was taken for an attempt that is not sent after all.
func (g *gates) giveBack() {
	g.Leave()
	if g.held {
		g.budget.Return(g.world.now, g.permit)
		g.permit, g.held = budget.Permit{}, false
	}
}

// settle tells the budget, if that paid for an attempt, whether it helped.
func (g *gates) settle(a *attempt, helped bool) {
	if a.held {
		g.budget.Settle(g.world.now, a.permit, helped)
		a.permit, a.held = budget.Permit{}, false
	}
}
