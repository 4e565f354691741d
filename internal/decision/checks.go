// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import "github.com/stagger-go/stagger/policy"

// Check is one check after a failed attempt: those of Decide, and the two after it that take something.
type Check struct {
	Question string
	No       policy.Reason // the reason if the answer is no
}

// Checks returns the checks in order, for explanations and tests: clients link none of them.
func Checks() []Check {
	return []Check{
		{"May another attempt help after this outcome?", policy.ReasonNonRetryable},
		{"Has the application seen no part of the attempt?", policy.ReasonCommitted},
		{"Is an attempt left?", policy.ReasonAttemptsExhausted},
		{"Does the server allow it, after at most maxPushback?", policy.ReasonPushbackStop},
		{"Is the method idempotent?", policy.ReasonNotIdempotent},
		{"Has the newest attempt failed?", policy.ReasonFollowed},
		{"Is no upstream caller retrying this request?", policy.ReasonChainStop},
		{"Is the circuit closed?", policy.ReasonBreakerOpen},
		{"Does admission expect a response before the deadline?", policy.ReasonOverloaded},
		{"Was one of the method's last ten responses not very slow?", policy.ReasonSlowEverywhere},
		{"After a slow attempt: were at most a fifth of the last responses slow?", policy.ReasonNotProvenFast},
		{"Do delay and attempt fit before the deadline?", policy.ReasonDeadlineTooClose},
		{"Is there room for another waiting call?", policy.ReasonTooManyWaiting},
		{"Has an attempt at the target been answered, within the wait for it?", policy.ReasonFailingEverywhere},
		{"Does the budget pay for another attempt?", policy.ReasonBudgetExhausted},
	}
}

// Reasons returns all reasons: first those of the checks, in their order, then the others.
func Reasons() (list []policy.Reason) {
	for _, c := range Checks() {
		list = append(list, c.No)
	}
	return append(list, policy.ReasonRetry, policy.ReasonHedge, policy.ReasonSucceeded, policy.ReasonDeadlineExceeded,
		policy.ReasonCancelled, policy.ReasonClosed, policy.ReasonNotConnected, policy.ReasonModeOff)
}
