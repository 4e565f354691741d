// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"sync/atomic"
	"time"
)

// LastAnswers says whether one of the last five answers of a method, at a target, took longer than the per-attempt
// timeout; for a method that is hedged, longer than the hedging delay and twice the usual latency. Then all servers are
// slow, since there is a queue, and one attempt more makes that longer. A server that hangs does not answer, so a hang
// alone says nothing.
//
//	fast ── a slow answer ──► slow ── five fast answers in a row, or no slow one for answerAge ──► fast
//
// Five and not one: in an overload, some servers are less busy than others, and answer in time now and then.
//
// The zero value has seen no answer, and is fast. It is safe for concurrent use; where two answers come at once, either
// may count as the last. A fast answer after others writes nothing.
type LastAnswers struct {
	slowAt atomic.Int64 // when the last slow answer came, on the budgets' clock; 0: it does not count any more
	fast   atomic.Int32 // answers since then
}

const (
	answersThatCount = 5
	answerAge        = 10 * time.Second       // an older answer says nothing: what follows it may be a hang
	answerRefresh    = 100 * time.Millisecond // of slowAt, so that slow answers at once write it once
)

// Record notes an answer that came at now, after took, and was slow if that is longer than the timeout.
func (l *LastAnswers) Record(took, timeout, now time.Duration) {
	slowAt := time.Duration(l.slowAt.Load())
	if took > timeout {
		if l.fast.Load() > 0 {
			l.fast.Store(0)
		}
		if slowAt == 0 || now-slowAt >= answerRefresh {
			l.slowAt.Store(int64(now))
		}
		return
	}
	if slowAt != 0 && l.fast.Add(1) >= answersThatCount {
		l.slowAt.Store(0)
		l.fast.Store(0)
	}
}

// Slow reports whether one of the last answers was slow.
func (l *LastAnswers) Slow(now time.Duration) bool {
	slowAt := time.Duration(l.slowAt.Load())
	return slowAt != 0 && now-slowAt <= answerAge
}
