// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// LastAnswers counts how many of the last five answers of a method, at a target, were slow. The zero value has no answers.
// It is safe for concurrent use; if two answers come at once, either may count as the last. A fast answer after fast ones
// writes nothing.
type LastAnswers struct {
	slow   atomic.Uint32                  // one bit for each answer, the newest lowest; 1: slow
	slowAt atomic.Int64                   // when the last slow answer came, on the budgets' clock
	took   [answersThatCount]atomic.Int64 // how long the last slow answers took
	next   atomic.Uint32                  // the number of slow answers: where in took the next one goes
}

const (
	answersThatCount = 5
	answerAge        = 10 * time.Second       // an older answer does not count: the server may hang since then
	answerRefresh    = 100 * time.Millisecond // of slowAt, so that simultaneous slow answers write it once
)

// RecordAnswer records an answer that came at now after took.
func (l *LastAnswers) RecordAnswer(slow bool, took, now time.Duration) {
	before := l.slow.Load()
	if before == 0 && !slow {
		return
	}
	after := before << 1 & (1<<answersThatCount - 1)
	if slow {
		after |= 1
		l.took[(l.next.Add(1)-1)%answersThatCount].Store(int64(took))
		if at := time.Duration(l.slowAt.Load()); before == 0 || now-at >= answerRefresh {
			l.slowAt.Store(int64(now))
		}
	}
	if after != before {
		l.slow.CompareAndSwap(before, after)
	}
}

// Slow returns how many of the last answers were slow and took longer than least, or 0 if the last slow one is too old.
func (l *LastAnswers) Slow(least, now time.Duration) (n int) {
	slow := l.slow.Load()
	if slow == 0 || now-time.Duration(l.slowAt.Load()) > answerAge {
		return 0
	}
	next := l.next.Load()
	for i := range bits.OnesCount32(slow) {
		if l.took[(next-1-uint32(i))%answersThatCount].Load() > int64(least) {
			n++
		}
	}
	return n
}
