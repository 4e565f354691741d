// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Reason names what ended a call, or let it go on. The names are the vocabulary of the whole
// project: metric labels, log fields and explanations print them as they stand here.
type Reason string

// The reasons of [Policy.Decide], in the order in which they are asked.
const (
	NonRetryable      Reason = "non_retryable"      // another attempt would not help
	Committed         Reason = "committed"          // the application has seen part of this attempt
	AttemptsExhausted Reason = "attempts_exhausted" // no attempt is left
	NotIdempotent     Reason = "not_idempotent"     // nobody declared the method safe to repeat
	PushbackStop      Reason = "pushback_stop"      // the server forbids it, or asks for too long a delay
	Followed          Reason = "followed"           // slow as it was, another attempt was sent before it failed, and still runs
	ChainStop         Reason = "chain_stop"         // the caller further up, whose retry this call is part of, owns it
	BreakerOpen       Reason = "breaker_open"       // the circuit is open
	DeadlineTooClose  Reason = "deadline_too_close" // delay and attempt do not fit before the deadline
	TooManyWaiting    Reason = "too_many_waiting"   // as many calls wait as may
	BudgetExhausted   Reason = "budget_exhausted"   // the traffic has not earned another attempt
	Retry             Reason = "retry"              // every answer was yes
	Hedge             Reason = "hedge"              // every answer was yes, and others may still be running
)

// What ends a call without a decision.
const (
	Succeeded Reason = "succeeded" // the last attempt was answered with OK
	Cancelled Reason = "cancelled" // the caller gave up while the call waited to retry
	Closed    Reason = "closed"    // the ClientConn was closed while the call waited to retry
)
