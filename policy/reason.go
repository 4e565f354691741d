// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Reason is the reason why a call ended, or was retried. Metric labels, log fields and explanations use these names unchanged.
type Reason string

// The reasons of decisions, in the order of the checks.
const (
	ReasonNonRetryable      Reason = "non_retryable"      // another attempt would not help
	ReasonCommitted         Reason = "committed"          // the application has seen part of this attempt
	ReasonAttemptsExhausted Reason = "attempts_exhausted" // no attempt is left
	ReasonPushbackStop      Reason = "pushback_stop"      // the server forbids it, or its delay is too long
	ReasonNotIdempotent     Reason = "not_idempotent"     // the method isn't idempotent
	ReasonFollowed          Reason = "followed"           // after this slow attempt another one was sent, which still runs
	ReasonChainStop         Reason = "chain_stop"         // this call is part of an upstream caller's retry, and that caller is responsible for retrying
	ReasonBreakerOpen       Reason = "breaker_open"       // the circuit is open
	ReasonOverloaded        Reason = "overloaded"         // the service answers too slowly to answer the attempt in time
	ReasonSlowEverywhere    Reason = "slow_everywhere"    // all of the target's last responses were long: there is a queue
	ReasonNotProvenFast     Reason = "not_proven_fast"    // nothing is sent beside a slow attempt: few responses are known, or a recent one was long
	ReasonDeadlineTooClose  Reason = "deadline_too_close" // delay and attempt do not fit before the deadline
	ReasonTooManyWaiting    Reason = "too_many_waiting"   // the maximum number of calls is waiting
	ReasonBudgetExhausted   Reason = "budget_exhausted"   // the budget does not pay for another attempt
	ReasonRetry             Reason = "retry"              // all checks passed
	ReasonHedge             Reason = "hedge"              // all checks passed, and other attempts may still be running
)

// The reasons without a decision.
const (
	ReasonSucceeded        Reason = "succeeded"         // the last attempt was answered with OK
	ReasonDeadlineExceeded Reason = "deadline_exceeded" // the caller's deadline has passed
	ReasonCancelled        Reason = "cancelled"         // the caller cancelled the call
	ReasonClosed           Reason = "closed"            // the ClientConn was closed, or the Retrier before another attempt
	ReasonNotConnected     Reason = "not_connected"     // the maximum wait for a connection is over
	ReasonModeOff          Reason = "mode_off"          // the mode prevents further attempts
)
