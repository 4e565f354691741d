// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"sync/atomic"
	"time"
)

// Kind is the kind of an outcome.
type Kind uint32

// The kinds. Long means: much longer than the method's fastest response, and a large part of the call's time. So there is a queue.
const (
	KindFast   Kind = iota + 1 // a response
	KindLong                   // a response that took long
	KindMissed                 // none before the call's deadline
)

// Outcomes are the last five outcomes of attempts at a target, which show how fast its servers work. The zero value has none.
// It is safe for concurrent use. If two outcomes are recorded at the same time, the time of one may be read with the length of the other.
type Outcomes struct {
	count atomic.Uint32
	last  [outcomesThatCount]struct {
		kind     atomic.Uint32 // 0: none
		took, at atomic.Int64
	}
}

const (
	outcomesThatCount = 5
	outcomeAge        = 3 * time.Second        // older outcomes don't count: the servers may hang since then
	freshAge          = time.Second            // of a long response that makes slow attempts stop
	fastInterval      = 100 * time.Millisecond // between fast responses: most successes then write nothing
)

// Record records an outcome at now, of an attempt that took this long.
func (o *Outcomes) Record(k Kind, took, now time.Duration) {
	if k == KindFast && o.Fast(now) {
		return
	}
	slot := &o.last[(o.count.Add(1)-1)%outcomesThatCount]
	slot.took.Store(int64(took))
	slot.at.Store(int64(now))
	slot.kind.Store(uint32(k))
}

// Fast reports whether the newest outcome is a fast response of the last tenth of a second. Then another one is not recorded.
func (o *Outcomes) Fast(now time.Duration) bool {
	newest := &o.last[(o.count.Load()-1)%outcomesThatCount]
	return Kind(newest.kind.Load()) == KindFast && now-time.Duration(newest.at.Load()) < fastInterval
}

// Evidence is what the last outcomes show to a call.
type Evidence struct {
	Fast, Long int  // outcomes of the last 3 s: responses that are not long; long ones and missed deadlines
	LongNow    bool // a response of the last second was long
	New        bool // there was at most one outcome ever
}

// FewFast reports whether at most one outcome was fast: too few to show that the servers work.
func (e Evidence) FewFast() bool { return e.Fast < 2 }

// Queue reports whether all outcomes were long, and there was one.
func (e Evidence) Queue() bool { return e.Long > 0 && e.Fast == 0 }

// AllFast reports whether all outcomes that count are younger than 3 s, and fast.
func (e Evidence) AllFast() bool { return e.Fast >= outcomesThatCount }

// Evidence returns what the outcomes show. Those that took at most least aren't long.
func (o *Outcomes) Evidence(least, now time.Duration) (e Evidence) {
	e.New = o.count.Load() <= 1
	for i := range o.last {
		slot := &o.last[i]
		kind, age := Kind(slot.kind.Load()), now-time.Duration(slot.at.Load())
		switch {
		case kind == 0 || age > outcomeAge:
		case kind != KindFast && slot.took.Load() > int64(least):
			e.Long++
			e.LongNow = e.LongNow || kind == KindLong && age <= freshAge
		default:
			e.Fast++
		}
	}
	return e
}
