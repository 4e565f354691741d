// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// slots is the number of slots in a window. It slides by whole slots, so a success counts for nine to ten tenths of the window.
const slots = 10

// recent counts the successes of the last window. It is not safe for concurrent use.
type recent struct {
	width   time.Duration // of a slot
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
	if passed < r.width {
		return
	}
	r.start += passed - passed%r.width
	n := min(passed/r.width, slots)
	copy(r.slots[n:], r.slots[:slots-n])
	clear(r.slots[:n])
}

// end returns the end of the newest slot.
func (r *recent) end() time.Duration {
	switch {
	case !r.started:
		return math.MinInt64
	case since(math.MaxInt64, r.start) < r.width:
		return math.MaxInt64
	default:
		return r.start + r.width
	}
}

// sum returns the successes of the window.
func (r *recent) sum() (n int64) {
	for _, s := range r.slots {
		n += s
	}
	return n
}

// resize changes the width of the slots. A success goes to the slot that begins with its own or earlier, so that none counts too long.
func (r *recent) resize(width time.Duration) {
	old := *r
	r.width, r.slots = width, [slots]int64{}
	for i, n := range old.slots {
		if to := (time.Duration(i)*old.width + width - 1) / width; to < slots {
			r.slots[to] += n
		}
	}
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
