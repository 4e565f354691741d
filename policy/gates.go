// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Gates are what has a say in whether another attempt follows, beside the policy itself. They belong
// to one call.
type Gates interface {
	Breaker
	Answers
	Overload
	WaitLimit
	Budget
}

// Breaker is what [Policy.Decide] asks of a circuit breaker.
type Breaker interface {
	// Open reports whether the circuit lets no attempt through.
	Open() bool
}

// Answers is what [Policy.Decide] asks, after a per-attempt timeout, about the answers to all calls of the method.
type Answers interface {
	// SlowEverywhere reports whether one of the last of them took longer than that timeout.
	SlowEverywhere() bool
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
	Withdraw(out *Outcome, factor float64) bool
}
