// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Reason says why a call ended, or was retried. Metric labels, log fields and explanations use these names unchanged.
type Reason string

// Reasons of decisions, in the order of the checks.
const (
	ReasonNonRetryable      Reason = "non_retryable"      // another attempt would not help
	ReasonCommitted         Reason = "committed"          // the application has seen part of this attempt
	ReasonAttemptsExhausted Reason = "attempts_exhausted" // no attempt is left
	ReasonPushbackStop      Reason = "pushback_stop"      // the server forbids it, or its delay is too long
	ReasonNotIdempotent     Reason = "not_idempotent"     // the method isn't idempotent
	ReasonFollowed          Reason = "followed"           // another attempt was sent after this slow one, and still runs
	ReasonChainStop         Reason = "chain_stop"         // this call is part of a retry by an upstream caller, who is responsible
	ReasonBreakerOpen       Reason = "breaker_open"       // the circuit is open
	ReasonOverloaded        Reason = "overloaded"         // the service is too slow to respond to the attempt in time
	ReasonSlowEverywhere    Reason = "slow_everywhere"    // all of the method's last ten responses were very slow: there is a queue
	ReasonNotProvenFast     Reason = "not_proven_fast"    // no attempt after a slow one: too few responses are known, or too many were slow
	ReasonDeadlineTooClose  Reason = "deadline_too_close" // delay and attempt do not fit before the deadline
	ReasonTooManyWaiting    Reason = "too_many_waiting"   // the maximum number of calls is waiting
	ReasonFailingEverywhere Reason = "failing_everywhere" // all attempts at the target fail, and the call has waited for an answer, or doesn't
	ReasonBudgetExhausted   Reason = "budget_exhausted"   // the budget does not pay for another attempt
	ReasonRetry             Reason = "retry"              // all checks passed
	ReasonHedge             Reason = "hedge"              // all checks passed, and other attempts may still be running
)

// Reasons for which a call ends without a decision.
const (
	ReasonSucceeded        Reason = "succeeded"         // the last attempt ended with OK
	ReasonDeadlineExceeded Reason = "deadline_exceeded" // the caller's deadline has passed
	ReasonCancelled        Reason = "cancelled"         // the caller cancelled the call
	ReasonClosed           Reason = "closed"            // the ClientConn was closed, or the Retrier before another attempt
	ReasonNotConnected     Reason = "not_connected"     // the maximum wait for a connection is over
	ReasonModeOff          Reason = "mode_off"          // the mode prevents further attempts
)
