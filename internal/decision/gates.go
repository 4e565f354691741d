// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import "github.com/stagger-go/stagger/policy"

// Gates decide, together with the policy, whether another attempt follows. They belong to one call.
type Gates interface {
	Switch
	Breaker
	Responses
	Overload
	WaitLimit
	Budget
}

// Switch can forbid all further attempts at any time.
type Switch interface {
	// Off returns the reason why nothing may be sent, [policy.ReasonClosed] or [policy.ReasonModeOff], or "".
	Off() policy.Reason
}

// Breaker is the part of a circuit breaker that [Policy.Decide] uses.
type Breaker interface {
	// Open reports whether the circuit is open: it blocks all attempts.
	Open() bool
}

// Responses knows the last responses of the target.
type Responses interface {
	// SlowEverywhere reports whether all of them were long: there is a queue, which another attempt would make longer.
	SlowEverywhere() bool
	// ProvenFast reports whether an attempt may be sent beside a slow one: enough responses are known, and not too many were long.
	ProvenFast() bool
}

// Overload knows the load of a service.
type Overload interface {
	// Overloaded reports whether the last responses indicate that an extra attempt would not be answered before the call's
	// deadline. Without admission it returns false.
	Overloaded() bool
}

// WaitLimit limits the waiting calls.
type WaitLimit interface {
	// TakeSlot takes a wait slot, if one is free. The caller releases it after the wait.
	TakeSlot() bool
	// ReleaseSlot releases the slot of a call that does not wait after all.
	ReleaseSlot()
}

// Budget is the part of a budget that [Policy.Decide] uses.
type Budget interface {
	// Fail records a failure that counts against the server: its code is retryable, or the server forbids a retry.
	Fail()
	// AllowExtra asks for an extra attempt after out. If the attempt is not sent, the caller returns the permit.
	AllowExtra(out Outcome) bool
}

// Departure has the checks of [Refusal] before an attempt is sent.
type Departure interface {
	Switch
	// Admit reports whether the service can answer the call in time, and then counts the call.
	Admit() bool
	// NotConnected reports whether the attempt has waited for a connection as long as it may.
	NotConnected() bool
	// TooLate reports whether the attempt would be sent too late before the deadline.
	TooLate() bool
	// TakeSlot is that of [WaitLimit]. It returns true if the call already has a wait slot.
	TakeSlot() bool
	// Open is that of [Breaker].
	Open() bool
	// Allow asks the circuit breaker for permission to send. The breaker then gets a report of the result.
	Allow() bool
}
