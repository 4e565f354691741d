// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// target is what stagger should reach in a storm. A field that is zero is no target.
type target struct {
	success  float64 // at least, 0 to 1
	perCall  float64 // requests for each call, at most
	recovery float64 // at most, in times that the client without retries needs
	share    float64 // of the success of the client without retries, at least
}

// judgement says whether a client reached the target.
type judgement string

const (
	pass     judgement = "PASS"
	miss     judgement = "MISS"
	void     judgement = "VOID" // its calls, or those that it is measured by, began too late to say
	unjudged judgement = "–"
)

// String says it in the words of the tables.
func (t target) String() string {
	var parts []string
	if t.success > 0 {
		parts = append(parts, fmt.Sprintf("success at least %g %%", 100*t.success))
	}
	if t.perCall > 0 {
		parts = append(parts, fmt.Sprintf("at most %g requests per call", t.perCall))
	}
	if t.recovery > 0 {
		parts = append(parts, fmt.Sprintf("time to recover at most %g times that without retries", t.recovery))
	}
	if t.share > 0 {
		parts = append(parts, fmt.Sprintf("success at least %g times that without retries", t.share))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// tooLate is from when on calls that begin late speak of the machine and not of the client.
const tooLate = 50 * time.Millisecond

// judge compares r with the target, and with the client without retries in the same storm.
func (t target) judge(r, without result) judgement {
	switch {
	case t == target{}:
		return unjudged
	case r.late > tooLate, t.compares() && without.late > tooLate:
		return void
	case r.success < t.success,
		t.perCall > 0 && r.perCall > t.perCall,
		t.recovery > 0 && !r.recovery.within(t.recovery, without.recovery),
		r.success < t.share*without.success:
		return miss
	default:
		return pass
	}
}

// compares reports whether the target is one beside the client without retries.
func (t target) compares() bool { return t.recovery > 0 || t.share > 0 }

// within reports whether r took at most times as long as other. Whoever never recovers may be
// compared with its like only.
func (r recovery) within(times float64, other recovery) bool {
	if r.state != returned {
		return r.state == other.state
	}
	return other.state != returned || r.took.Seconds() <= times*other.took.Seconds()
}
