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
		{"Does the outcome mean that another attempt may help?", NonRetryable},
		{"Has the application seen no part of the attempt?", Committed},
		{"Is an attempt left?", AttemptsExhausted},
		{"May the method be repeated?", NotIdempotent},
		{"Does the server allow it, after a delay that is not above maxPushback?", PushbackStop},
		{"Is it the newest attempt that has failed?", Followed},
		{"Is it not a caller further up who owns the retry?", ChainStop},
		{"Is the circuit closed?", BreakerOpen},
		{"Do delay and attempt fit before the deadline?", DeadlineTooClose},
		{"Is there room for one more call that waits?", TooManyWaiting},
		{"Has the traffic earned another attempt?", BudgetExhausted},
	}
}
