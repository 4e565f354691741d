// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Step is one question of [Policy.Decide].
type Step struct {
	Question string
	No       Reason // what ends the call if the answer is no
}

// Steps are the questions, in the order in which they are asked.
func Steps() []Step {
	return []Step{
		{"Does the outcome mean that another attempt may help?", ReasonNonRetryable},
		{"Has the application seen no part of the attempt?", ReasonCommitted},
		{"Is an attempt left?", ReasonAttemptsExhausted},
		{"May the method be repeated?", ReasonNotIdempotent},
		{"Does the server allow it, after a delay that is not above maxPushback?", ReasonPushbackStop},
		{"Is it the newest attempt that has failed?", ReasonFollowed},
		{"Is it not a caller further up who owns the retry?", ReasonChainStop},
		{"Is the circuit closed?", ReasonBreakerOpen},
		{"Do delay and attempt fit before the deadline?", ReasonDeadlineTooClose},
		{"Is there room for one more call that waits?", ReasonTooManyWaiting},
		{"Has the traffic earned another attempt?", ReasonBudgetExhausted},
	}
}
