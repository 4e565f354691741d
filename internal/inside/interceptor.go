// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package inside

import "time"

// Since returns when an interceptor.Retrier started to use its policies. Package interceptor sets it.
var Since func(retrier any) time.Time

// Random returns an interceptor.Option that makes random the source of all jitter, for simulations and tests that repeat. It must be
// uniform in [0, 1), and safe for concurrent use. Package interceptor sets it.
var Random func(random func() float64) any

// Admission returns readings of an interceptor.Retrier's methods with admission REFUSE or AUTO that have had calls, ordered by
// target and method. Package interceptor sets it.
var Admission func(retrier any) []AdmissionState

// AdmissionState is a reading of a method's admission.
type AdmissionState struct {
	Target  string
	Method  string
	Running int    // attempts without an answer yet
	Refused uint64 // calls refused so far
	// WouldRefuse counts the calls made so far that mode ENFORCE would have refused. Each of them lengthens the
	// queue, so this is an upper bound.
	WouldRefuse uint64
}
