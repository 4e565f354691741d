// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"sync/atomic"
	"time"
)

// fastestAge is the minimum time for which the fastest response counts; twice that is the maximum. An overload may last
// for minutes, but a service may also become slower for good.
const fastestAge = 5 * time.Minute

// Fastest follows the shortest time in which a method has answered in the last 5 to 10 minutes. The zero value has none.
// It is safe for concurrent use. A response that is not the fastest reads three words and writes nothing.
type Fastest struct {
	until   atomic.Int64 // when this period ends, on the budgets' clock
	fastest atomic.Int64 // of this period and the one before; 0: none
	current atomic.Int64 // of this period; 0: none
}

// Record records a response that came at now after took, and returns the fastest before it, or 0.
func (f *Fastest) Record(took, now time.Duration) (fastest time.Duration) {
	if until := time.Duration(f.until.Load()); now >= until {
		f.turn(until, now)
	}
	fastest = time.Duration(f.fastest.Load())
	lower(&f.fastest, took)
	lower(&f.current, took)
	return fastest
}

// Shortest returns the shortest time, or 0.
func (f *Fastest) Shortest() time.Duration { return time.Duration(f.fastest.Load()) }

// lower stores took if that is less than the current value. If two calls run in parallel, either may be lost.
func lower(to *atomic.Int64, took time.Duration) {
	if was := to.Load(); was == 0 || int64(took) < was {
		to.Store(max(int64(took), 1))
	}
}

// turn begins another period, to which the fastest response of the last one also belongs, unless that one ended long ago.
func (f *Fastest) turn(until, now time.Duration) {
	if !f.until.CompareAndSwap(int64(until), int64(now+fastestAge)) {
		return
	}
	last := f.current.Swap(0)
	if now-until >= fastestAge {
		last = 0
	}
	f.fastest.Store(last)
}
