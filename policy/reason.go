// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
)

// Reason names what ended a call, or let it go on. The names are the vocabulary of the whole
// project: metric labels, log fields and explanations print them as they stand here.
type Reason string

// What a decision says, in the order of its questions.
const (
	ReasonNonRetryable      Reason = "non_retryable"      // another attempt would not help
	ReasonCommitted         Reason = "committed"          // the application has seen part of this attempt
	ReasonAttemptsExhausted Reason = "attempts_exhausted" // no attempt is left
	ReasonNotIdempotent     Reason = "not_idempotent"     // nobody declared the method safe to repeat
	ReasonPushbackStop      Reason = "pushback_stop"      // the server forbids it, or asks for too long a delay
	ReasonFollowed          Reason = "followed"           // slow as it was, another attempt was sent before it failed, and still runs
	ReasonChainStop         Reason = "chain_stop"         // the caller further up, whose retry this call is part of, owns it
	ReasonBreakerOpen       Reason = "breaker_open"       // the circuit is open
	ReasonLatencyUnknown    Reason = "latency_unknown"    // too few answers of the method are known to tell that the attempt is slow
	ReasonSlowEverywhere    Reason = "slow_everywhere"    // the last answers were slow, too: there is a queue
	ReasonOverloaded        Reason = "overloaded"         // the service answers too slowly to answer the attempt in time
	ReasonDeadlineTooClose  Reason = "deadline_too_close" // delay and attempt do not fit before the deadline
	ReasonTooManyWaiting    Reason = "too_many_waiting"   // as many calls wait as may
	ReasonBudgetExhausted   Reason = "budget_exhausted"   // the traffic has not earned another attempt
	ReasonRetry             Reason = "retry"              // every answer was yes
	ReasonHedge             Reason = "hedge"              // every answer was yes, and others may still be running
)

// What ends a call without a decision.
const (
	ReasonSucceeded        Reason = "succeeded"         // the last attempt was answered with OK
	ReasonDeadlineExceeded Reason = "deadline_exceeded" // the caller's own deadline has passed
	ReasonCancelled        Reason = "cancelled"         // the caller gave up
	ReasonClosed           Reason = "closed"            // the ClientConn was closed, or the Retrier before another attempt
	ReasonNotConnected     Reason = "not_connected"     // the wait for a connection was as long as it may be
	ReasonModeOff          Reason = "mode_off"          // the mode lets no other attempt be sent
)

// reasons are all of them, in the order in which they stand above.
var reasons = []Reason{
	ReasonNonRetryable, ReasonCommitted, ReasonAttemptsExhausted, ReasonNotIdempotent, ReasonPushbackStop, ReasonFollowed,
	ReasonChainStop, ReasonBreakerOpen, ReasonLatencyUnknown, ReasonSlowEverywhere, ReasonOverloaded, ReasonDeadlineTooClose,
	ReasonTooManyWaiting, ReasonBudgetExhausted,
	ReasonRetry, ReasonHedge,
	ReasonSucceeded, ReasonDeadlineExceeded, ReasonCancelled, ReasonClosed, ReasonNotConnected, ReasonModeOff,
}

// Reasons returns all reasons: first those of decisions, in the order of their questions, then those that need none.
func Reasons() []Reason { return slices.Clone(reasons) }
