// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

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
func (a *account) Fail(now time.Time) { a.budget.Fail(now) }

// Withdraw implements [policy.Budget].
func (a *account) Withdraw(now time.Time, out *policy.Outcome) bool {
	kind := budget.AfterFailure
	if out.TimedOut {
		kind = budget.AfterTimeout
	}
	a.next.permit, a.next.held = a.budget.Withdraw(now, kind)
	return a.next.held
}

// sent moves on: the attempt that was to follow is the one that runs.
func (a *account) sent() {
	a.running, a.next = a.next, grant{}
}

// giveBack returns the permit of an attempt that is not sent after all.
func (a *account) giveBack(now time.Time) {
	if a.next.held {
		a.budget.Return(now, a.next.permit)
		a.next = grant{}
	}
}

// finish closes the account. An extra attempt that succeeded pays for itself.
func (a *account) finish(now time.Time, ok bool) {
	a.giveBack(now)
	if ok && a.running.held {
		a.budget.Refund(now, a.running.permit)
	}
	a.budget.Finish(now, ok)
}
