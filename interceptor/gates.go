// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// gates are what [policy.Policy.Decide] asks on behalf of one call, and what the call holds of them:
// a permit of its budget, a place among the calls that wait, leave of its circuit breaker.
type gates struct {
	account
	spot
	circuit
}

var _ policy.Gates = (*gates)(nil)

// equip gives an attempt what was got for it, now that it is sent: the wait is over.
func (g *gates) equip(a *oldAttempt) {
	g.Leave()
	a.permit, g.next = g.next, grant{}
	a.done, g.done = g.done, nil
}

// giveBack lets go of what was taken for an attempt that is not sent after all.
func (g *gates) giveBack() {
	g.Leave()
	g.unspend()
}

// settle says how an attempt has ended: to the breaker, with its error, and to the budget, if that paid
// for it, whether it helped.
func (g *gates) settle(a *oldAttempt, err error, helped bool) {
	if done := a.done; done != nil {
		a.done = nil
		done(err)
	}
	if a.permit.held {
		g.budget.Settle(budget.Now(), a.permit.permit, helped)
		a.permit = grant{}
	}
}
