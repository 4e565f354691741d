// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// LastAnswers says how many of the last five answers of a method, at a target, were slow. The zero value has seen no answer.
// It is safe for concurrent use; where two answers come at once, either may count as the last. A fast answer after others
// writes nothing.
type LastAnswers struct {
	slow   atomic.Uint32 // a bit for each answer, the newest lowest: it was slow
	slowAt atomic.Int64  // when the last slow answer came, on the budgets' clock
}

const (
	answersThatCount = 5
	answerAge        = 10 * time.Second       // an older answer says nothing: what follows it may be a hang
	answerRefresh    = 100 * time.Millisecond // of slowAt, so that slow answers at once write it once
)

// Record notes an answer that came at now.
func (l *LastAnswers) Record(slow bool, now time.Duration) {
	before := l.slow.Load()
	if before == 0 && !slow {
		return
	}
	after := before << 1 & (1<<answersThatCount - 1)
	if slow {
		after |= 1
		if at := time.Duration(l.slowAt.Load()); before == 0 || now-at >= answerRefresh {
			l.slowAt.Store(int64(now))
		}
	}
	if after != before {
		l.slow.CompareAndSwap(before, after)
	}
}

// Slow is how many of the last answers were slow; 0 if the last slow one is too old.
func (l *LastAnswers) Slow(now time.Duration) int {
	slow := l.slow.Load()
	if slow == 0 || now-time.Duration(l.slowAt.Load()) > answerAge {
		return 0
	}
	return bits.OnesCount32(slow)
}
