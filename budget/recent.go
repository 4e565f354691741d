// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// slots is the number of slots in a window, and slot the time of one. The window slides by whole slots, so a success counts for nine to
// ten tenths of it.
const (
	slots = 10
	slot  = Window / slots
)

// recent counts the successes of the last window. It is not safe for concurrent use.
type recent struct {
	start   time.Duration // of the newest slot
	started bool          // at the first time that it saw
	counted int64         // since the start
	slots   [slots]int64  // the newest first
}

// advance moves the window to now. successes is their number since the start. A time before the newest slot counts as that slot.
func (r *recent) advance(now time.Duration, successes int64) {
	r.slots[0] += successes - r.counted
	r.counted = successes
	if !r.started {
		r.started, r.start = true, now
	}
	passed := since(now, r.start)
	if passed < slot {
		return
	}
	r.start += passed - passed%slot
	n := min(passed/slot, slots)
	copy(r.slots[n:], r.slots[:slots-n])
	clear(r.slots[:n])
}

// end returns the end of the newest slot.
func (r *recent) end() time.Duration {
	switch {
	case !r.started:
		return math.MinInt64
	case since(math.MaxInt64, r.start) < slot:
		return math.MaxInt64
	default:
		return r.start + slot
	}
}

// sum returns the successes of the window.
func (r *recent) sum() (n int64) {
	for _, s := range r.slots {
		n += s
	}
	return n
}

// since returns a-b, within 64 bits.
func since(a, b time.Duration) time.Duration {
	d := a - b
	switch {
	case a > b && d < 0:
		return math.MaxInt64
	case a < b && d > 0:
		return math.MinInt64
	default:
		return d
	}
}
