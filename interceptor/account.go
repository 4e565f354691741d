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
func (a *account) Withdraw(out *policy.Outcome) bool {
	kind := budget.AfterFailure
	if out.TimedOut {
		kind = budget.AfterTimeout
	}
	a.next.permit, a.next.held = a.budget.Withdraw(budget.Now(), kind)
	return a.next.held
}

// sent moves on: the attempt that was to follow is the one that runs.
func (a *account) sent() {
	a.running, a.next = a.next, grant{}
}

// giveBack returns the permit of an attempt that is not sent after all.
func (a *account) giveBack() {
	if a.next.held {
		a.budget.Return(budget.Now(), a.next.permit)
		a.next = grant{}
	}
}

// succeed pays for the extra attempt that succeeded, if it was one.
func (a *account) succeed() {
	if a.running.held {
		a.budget.Refund(budget.Now(), a.running.permit)
	}
}
