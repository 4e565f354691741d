// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package inside

import "time"

// Since is when an interceptor.Retrier began to follow its policies. Package interceptor sets it.
var Since func(retrier any) time.Time

// Admission reads, of an interceptor.Retrier, what admission knows of each method that has it (admission: REFUSE or AUTO) and
// that calls have used so far, in the order of target and method. Package interceptor sets it.
var Admission func(retrier any) []AdmissionState

// AdmissionState is a reading of what admission knows of a method.
type AdmissionState struct {
	Target  string
	Method  string
	Running int    // attempts that have not been answered
	Refused uint64 // calls that were not made, so far
	// WouldRefuse is how many calls were made, so far, that would have been refused in mode ENFORCE. Each of them makes the
	// queue longer, so that it is an upper bound.
	WouldRefuse uint64
}
