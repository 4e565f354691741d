// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// Ends are events that may end a call, apart from its attempts' failures.
type Ends struct {
	Succeed   int           // the number of the first successful attempt; 0: none
	Committed bool          // the application sees headers of the first attempt before it fails
	Crowded   bool          // no wait slot is free
	Off       bool          // the mode is OFF
	Cancel    time.Duration // after this time the caller cancels the call; 0: never
	Close     time.Duration // after this time the connection is closed; 0: never
}

// firstStop returns when and why the call is stopped; Never if it is not.
func (e *Ends) firstStop(limit time.Duration) (at time.Duration, why policy.Reason) {
	at = attempts.Never
	for _, end := range []struct {
		at  time.Duration
		why policy.Reason
	}{{limit, policy.ReasonDeadlineExceeded}, {e.Cancel, policy.ReasonCancelled}, {e.Close, policy.ReasonClosed}} {
		if end.at > 0 && end.at < at {
			at, why = end.at, end.why
		}
	}
	return at, why
}

// stopped has the codes that gRPC returns for running attempts when a call is stopped.
var stopped = map[policy.Reason]codes.Code{
	policy.ReasonDeadlineExceeded: codes.DeadlineExceeded, policy.ReasonCancelled: codes.Canceled, policy.ReasonClosed: codes.Canceled,
}

// resultOf returns how attempt n ends, if the others fail.
func (e *Ends) resultOf(n int, failed attempts.Result) attempts.Result {
	if e.Succeed > 0 && n >= e.Succeed {
		return attempts.Result{}
	}
	return failed
}

// restrict makes the engine's settings refuse.
func (e *Ends) restrict(s *attempts.Settings) {
	if e.Crowded {
		s.Slots = full{}
	}
	if f, ok := s.Facts.(facts); ok && e.Off {
		f.off = true
		s.Facts = f
	}
}

// full implements [attempts.Slots] without a free slot.
type full struct{ slots }

func (full) TakeSlot() bool { return false }

// Condition is something that is true or false: a flag of stagger explain, and a checkbox of the debug page.
type Condition struct {
	Holds *bool
	Name  string
	Says  string
	Adds  string // to the sentence about what happens; "" if that has it already
}

// Conditions returns those of the question.
func (q *Question) Conditions() []Condition {
	return []Condition{
		{&q.Hang, "hang", "no attempt is ever answered", ""},
		{&q.Down, "down", "no connection can be made, from the call's start on", ""},
		{&q.InRetry, "in-retry", "the call is made inside an incoming one that is itself a retry", ""},
		{&q.BudgetEmpty, "budget-empty", "the budget refuses every extra attempt", ""},
		{&q.BreakerOpen, "breaker-open", "the circuit breaker opens after the first attempt", "the circuit opens after the first"},
		{&q.Unknown, "latency-unknown", "the method's latency is not known yet, so it is not hedged", "the method's latency is not known yet"},
		{&q.AllSlow, "slow-everywhere", "the method's last answers were slow", "the last answers of the method were slow"},
		{
			&q.Overloaded, "overloaded", "with admission, the last answers say that no other comes in time, after the first attempt",
			"the service becomes overloaded after the first",
		},
		{
			&q.Committed, "committed", "the application sees headers of the first attempt before it fails",
			"the application sees headers of the first before that",
		},
		{&q.Crowded, "crowded", "as many calls wait as maxWaiting allows", "no more calls may wait"},
		{&q.Off, "mode-off", "the mode is OFF, whatever the file says", "the mode is OFF"},
	}
}

// text returns the conditions, as the end of a sentence.
func (q *Question) text() string {
	var b strings.Builder
	switch {
	case q.Succeed == 1:
		b.WriteString(", but that every attempt is answered with OK")
	case q.Succeed > 1:
		fmt.Fprintf(&b, ", up to attempt %d, which is answered with OK", q.Succeed)
	}
	for _, c := range q.Conditions() {
		if *c.Holds && c.Adds != "" {
			b.WriteString(", and " + c.Adds)
		}
	}
	if q.Cancel > 0 {
		fmt.Fprintf(&b, ", and the caller cancels the call after %v", q.Cancel)
	}
	if q.Close > 0 {
		fmt.Fprintf(&b, ", and the connection is closed after %v", q.Close)
	}
	return b.String()
}
