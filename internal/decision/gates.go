// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import "github.com/stagger-go/stagger/policy"

// Gates are what has a say in whether another attempt follows, beside the policy itself. They belong
// to one call.
type Gates interface {
	Switch
	Breaker
	Answers
	Overload
	WaitLimit
	Budget
}

// Switch is what [Policy.Decide] asks of those who may forbid all further attempts at any time.
type Switch interface {
	// Off is why nothing may be sent any more: [policy.ReasonClosed], [policy.ReasonModeOff]; "" if it may be.
	Off() policy.Reason
}

// Breaker is what [Policy.Decide] asks of a circuit breaker.
type Breaker interface {
	// Open reports whether the circuit lets no attempt through.
	Open() bool
}

// Answers is what [Policy.Decide] asks about the answers to all calls of the method.
type Answers interface {
	// LatencyUnknown reports, after a hedging delay, whether the attempt is one of a hedged method whose usual latency is not known, so that
	// the hedging delay may be shorter than what every call takes.
	LatencyUnknown() bool
	// SlowEverywhere reports whether the last of them took so long that there is a queue, which an attempt after out would
	// only make longer: all of them took much of their calls' time, or, after a timeout, one of them took longer than that.
	SlowEverywhere(out Outcome) bool
}

// Overload is what [Policy.Decide] asks about the load of a service.
type Overload interface {
	// Overloaded reports whether an extra attempt could not be answered before the call's deadline, as far as the
	// last answers tell. Without admission it is false.
	Overloaded() bool
}

// WaitLimit is what [Policy.Decide] asks about the calls that wait.
type WaitLimit interface {
	// Enter takes a slot among the waiting calls, if one is free. To leave it when the wait is over
	// is the caller's business.
	Enter() bool
	// Leave gives the slot back, for a call that does not wait after all.
	Leave()
}

// Budget is what [Policy.Decide] asks of a budget.
type Budget interface {
	// Fail is told of every ended attempt that speaks against the server: its code is retryable,
	// or the server forbids a retry.
	Fail()
	// Withdraw asks for an extra attempt after out, at so many times the usual cost. If the attempt
	// is then not sent, giving back is the caller's business.
	Withdraw(out Outcome, factor float64) bool
}

// Departure is what [Refusal] asks before an attempt leaves.
type Departure interface {
	Switch
	// Admit reports whether the service can answer the call in time, which then counts.
	Admit() bool
	// NotConnected reports whether the attempt has waited for a connection for as long as it may.
	NotConnected() bool
	// TooLate reports whether the attempt is due when it is of no use any more before the deadline.
	TooLate() bool
	// Enter is that of [WaitLimit]. The wait slot that the call has already counts.
	Enter() bool
	// Confirm reports whether the attempt is paid for, if its budget has only promised that.
	Confirm() bool
	// Open is that of [Breaker].
	Open() bool
	// Allow asks the circuit breaker for leave to send. The breaker is then told how the attempt has ended.
	Allow() bool
}
