// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// account is what one call has drawn from its budget: a permit for the attempt that runs, and one
// for the attempt that is to follow. It is what [policy.Policy.Decide] sees of the budget.
type account struct {
	budget  budget.Budget
	running grant
	next    grant
}

// grant is a permit that may be there.
type grant struct {
	permit budget.Permit
	held   bool
}

// Fail implements [policy.Budget].
func (a *account) Fail() { a.budget.Fail(budget.Now()) }

// Withdraw implements [policy.Budget].
func (a *account) Withdraw(out *policy.Outcome, factor float64) bool {
	charge := budget.Charge{Kind: budget.AfterFailure, Factor: factor}
	if out.TimedOut {
		charge.Kind = budget.AfterTimeout
	}
	a.next.permit, a.next.held = a.budget.Withdraw(budget.Now(), charge)
	return a.next.held
}

// spend moves on: the attempt that was to follow is the one that runs.
func (a *account) spend() {
	a.running, a.next = a.next, grant{}
}

// unspend returns the permit of an attempt that is not sent after all.
func (a *account) unspend() {
	if a.next.held {
		a.budget.Return(budget.Now(), a.next.permit)
		a.next = grant{}
	}
}

// settle says how the running attempt has ended, if it was an extra one.
func (a *account) settle(helped bool) {
	if a.running.held {
		a.budget.Settle(budget.Now(), a.running.permit, helped)
		a.running = grant{}
	}
}

// finish settles what is open, and says how the call ended.
func (a *account) finish(end budget.End) {
	a.settle(false)
	a.budget.Finish(budget.Now(), end)
}
