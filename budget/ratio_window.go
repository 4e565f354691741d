// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// slots is the number of slots in a window. It slides by whole slots, so events count for nine to ten tenths of the window.
const slots = 10

// window holds the last ten slots. It is not safe for concurrent use.
type window struct {
	width   time.Duration // of a slot
	start   time.Duration // of the newest slot
	started bool          // at the first time that it saw
	counted int64         // the calls that slots have counted since the start
	slots   [slots]slot   // the newest first
}

// slot is a part of a window, in calls and micro-tokens.
type slot struct {
	calls int64
	spent int64 // charged in this slot and not given back; never negative
	bonus int64 // earned in this slot
}

// advance moves the window to now. calls is the number of calls since the start. A time before the newest slot counts as that
// slot, so that a charge and its expiry have one order.
func (w *window) advance(now time.Duration, calls int64) {
	w.slots[0].calls += calls - w.counted
	w.counted = calls
	if !w.started {
		w.started, w.start = true, now
	}
	passed := since(now, w.start)
	if passed < w.width {
		return
	}
	w.start += passed - passed%w.width
	n := min(passed/w.width, slots)
	copy(w.slots[n:], w.slots[:slots-n])
	clear(w.slots[:n])
}

// slotEnd returns the end of the newest slot.
func (w *window) slotEnd() time.Duration {
	if !w.started {
		return math.MinInt64
	}
	if since(math.MaxInt64, w.start) < w.width {
		return math.MaxInt64
	}
	return w.start + w.width
}

// at returns the slot of a time, or nil if it has left the window.
func (w *window) at(t time.Duration) *slot {
	age := since(w.start, t)
	switch {
	case age <= 0:
		return &w.slots[0]
	case age > (slots-1)*w.width:
		return nil
	default:
		return &w.slots[(age+w.width-1)/w.width]
	}
}

// sum returns the calls and the spending of the window.
func (w *window) sum() (calls, spent int64) {
	for _, s := range w.slots {
		calls += s.calls
		spent += s.spent - s.bonus
	}
	return calls, spent
}

// bonus returns the bonuses of the window.
func (w *window) bonus() (bonus int64) {
	for _, s := range w.slots {
		bonus += s.bonus
	}
	return bonus
}

// resize changes the width of the slots, and keeps only the calls. They go to the slot that begins with theirs or earlier, so
// that none counts too long.
func (w *window) resize(width time.Duration) {
	old := *w
	w.width, w.slots = width, [slots]slot{}
	for i, s := range old.slots {
		if to := (time.Duration(i)*old.width + width - 1) / width; to < slots {
			w.slots[to].calls += s.calls
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
