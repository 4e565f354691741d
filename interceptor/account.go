// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// account is what one call has to do with its budget. It is what [policy.Policy.Decide] sees of it.
type account struct {
	budget budget.Budget
	next   grant       // for the attempt that is to follow
	slow   budget.Kind // what an attempt beside a slow one is charged as
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
	charge := budget.Charge{Kind: budget.KindFailure, Factor: factor}
	if out.TimedOut {
		charge.Kind = a.slow
	}
	a.next.permit, a.next.held = a.budget.Withdraw(budget.Now(), charge)
	return a.next.held
}

// unspend returns the permit of an attempt that is not sent after all.
func (a *account) unspend() {
	if a.next.held {
		a.budget.Return(budget.Now(), a.next.permit)
		a.next = grant{}
	}
}
