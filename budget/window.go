// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// slots is how many parts a window has. It slides by whole parts, so that what happened counts for
// nine to ten tenths of the window.
const slots = 10

// epochs numbers the slots of a window from the first time that it sees, so that a clock may count
// from anywhere.
type epochs struct {
	width time.Duration
	first atomic.Pointer[time.Duration] // written once
}

// since is the time from the first one that was seen. A time before it counts as the first.
func (e *epochs) since(now time.Duration) time.Duration {
	first := e.first.Load()
	if first == nil {
		first = e.begin(now)
	}
	return max(now, *first) - *first
}

// at is the number of the slot that a time since the first lies in.
func (e *epochs) at(since time.Duration) uint64 { return uint64(since / e.width) } //nolint:gosec // not negative

// of is the number of the slot that now lies in.
func (e *epochs) of(now time.Duration) uint64 { return e.at(e.since(now)) }

// begin is apart from since, so that only it allocates.
func (e *epochs) begin(now time.Duration) *time.Duration {
	e.first.CompareAndSwap(nil, &now)
	return e.first.Load()
}

// start is the earliest time of an epoch.
func (e *epochs) start(epoch uint64) time.Duration {
	return *e.first.Load() + time.Duration(epoch)*e.width //nolint:gosec // came from a duration
}

// oldest is the earliest time that still counts at an epoch.
func (e *epochs) oldest(epoch uint64) time.Duration {
	if epoch < slots {
		return math.MinInt64 // all, since times before the first count as that
	}
	return e.start(epoch - slots + 1)
}

// within reports whether what happened in epoch still counts at the epoch now, and does already.
func within(epoch, now uint64) bool {
	return epoch <= now && now < epoch+slots
}
