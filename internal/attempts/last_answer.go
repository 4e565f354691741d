// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
)

// LastAnswer says whether the last answer of a method, at a target, took longer than the per-attempt timeout. Then
// all servers are slow, since there is a queue, and one attempt more makes that longer. A server that hangs does not
// answer, so a hang alone says nothing.
//
//	fast ── a slow answer ──► slow ── a fast answer, or none for answerAge ──► fast
//
// The zero value has seen no answer, and is fast. It is safe for concurrent use. A fast answer after another one
// writes nothing.
type LastAnswer struct {
	slowAt atomic.Int64 // when the last slow answer came, on the budgets' clock; 0: the last was fast
}

const (
	answerAge     = 10 * time.Second       // an older answer says nothing: what follows it may be a hang
	answerRefresh = 100 * time.Millisecond // of slowAt, so that slow answers at once write it once
)

// Record notes an answer that came at now, after took, and was slow if that is longer than the timeout.
func (l *LastAnswer) Record(took, timeout, now time.Duration) {
	switch slowAt := time.Duration(l.slowAt.Load()); {
	case took > timeout && (slowAt == 0 || now-slowAt >= answerRefresh):
		l.slowAt.Store(int64(now))
	case took <= timeout && slowAt != 0:
		l.slowAt.Store(0)
	}
}

// Slow reports whether the last answer was slow.
func (l *LastAnswer) Slow(now time.Duration) bool {
	slowAt := time.Duration(l.slowAt.Load())
	return slowAt != 0 && now-slowAt <= answerAge
}

// answered notes an answer at its first message, or at its end if that is the first: how long it took.
func (c *Call) answered(a *attempt, at time.Duration) {
	if timeout := c.set.Policy.PerAttemptTimeout(); c.set.LastAnswer != nil && timeout > 0 && !a.heard {
		c.set.LastAnswer.Record(at-a.began, timeout, at)
	}
}

// isAnswer reports whether a result is an answer: a server that said how the work came out. What it refuses, what
// another attempt may do better, and what becomes of a context say nothing of how fast it works.
func (c *Call) isAnswer(r *Result) bool {
	switch {
	case r.Local, r.Panicked:
		return false
	case r.Err == nil:
		return true
	case r.Unsent, r.Final:
		return false
	}
	switch r.Status.Code() {
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	default:
		return !c.set.Policy.Retryable(&r.Outcome)
	}
}
