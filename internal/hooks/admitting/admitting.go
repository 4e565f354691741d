// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admitting is what the core knows of package admission, which refuses calls that no server would answer in time: the hook by which
// a Retrier asks it, and what a program imports for it. The core imports this package, and a program imports package admission.
package admitting

import "time"

// Package is the import path of the package that has the gates.
const Package = "github.com/stagger-go/stagger/admission"

// NotImported says what a program lacks whose policies have admission REFUSE.
const NotImported = `the program does not have admission; add to its code: import _ "` + Package + `"`

// Gate decides whether the calls of one method to one target may be sent. It is asked like an interceptor.Gate, which is for circuit
// breakers: Open before a wait, without effect, Allow when an attempt is sent, and then Done once. It hears more than an error: how long
// the server took, which is up to a stream's first message, and why an attempt had no response. It takes the time as an argument. All
// methods are safe for concurrent use.
type Gate interface {
	// Open reports whether another attempt of a call with this time left would be answered in time.
	Open(now, left time.Duration) bool
	// Allow asks to send an attempt, 1 for the first, of a call with this time left. It returns how many attempts run, with this
	// one, or 0 if the attempt is refused. Only an enforced call is refused; would reports another one that is sent, and would be
	// refused.
	Allow(attempt int, now, left time.Duration, enforced bool) (running int, would bool)
	// Done is told how an attempt ended that Allow has counted.
	Done(now time.Duration, e End)
	// State returns a reading.
	State() State
}

// Never is the time left of a call without a deadline.
const Never = time.Duration(1<<63 - 1)

// End is how an attempt ended.
type End struct {
	How     How
	Took    time.Duration // until the response, with Answered
	Left    time.Duration // of the call's time when the attempt was sent
	Running int           // as Allow returned it
}

// How says what the end of an attempt shows of the service.
type How uint8

// The ends.
const (
	Other    How = iota // nothing
	Answered            // how long the server takes
	Untimed             // it was answered; the application decided how long that took
	Missed              // the call's deadline has passed, and the attempt was its first
	Full                // the server had no resources for it
)

// State is a reading of a gate.
type State struct {
	Running     int    // unanswered attempts
	Refused     uint64 // calls, so far
	WouldRefuse uint64 // calls that were sent because their mode isn't ENFORCE: an upper bound, since each lengthens the queue
}

var newGate func() Gate

// Register sets what makes gates. Package admission calls it when a program starts, and nobody else does.
func Register(makes func() Gate) { newGate = makes }

// Registered returns what makes gates: nil if the program does not import package admission.
func Registered() func() Gate { return newGate }
