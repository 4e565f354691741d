// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// reserve is a bucket of extra attempts that is full at the start, and that calls fill. Unlike a rate, it gives a client
// without traffic nothing to spend, so that the reserves of hundreds of small clients stay below what their calls add up to.
type reserve struct {
	tokens, capacity int64         // micro-tokens; without capacity there is no reserve
	calls            int64         // since the beginning, that have filled it
	at               time.Duration // until when
}

// The numbers of the default budget's reserve.
const (
	reserveTokens    = 4   // one attempt after a timeout
	reservePerSecond = 0.4 // at most, while calls come
	reservePerCall   = 0.3 // at most
	reserveForgets   = 10 * time.Minute
)

// newReserve makes a full reserve; none where there is another.
func newReserve(bucket bool) reserve {
	if !bucket {
		return reserve{}
	}
	return reserve{tokens: micro(reserveTokens), capacity: micro(reserveTokens)}
}

// fill adds what calls bring: so much for each, and so much for the time since the ones before. After a long time without
// calls it is full.
func (v *reserve) fill(now time.Duration, calls int64) {
	idle := since(now, v.at)
	switch n := calls - v.calls; {
	case v.capacity == 0:
	case idle >= reserveForgets:
		v.tokens, v.at, v.calls = v.capacity, now, calls
	case n > 0 && idle > 0:
		const second = int64(time.Second)
		byTime := int64(idle) * micro(reservePerSecond) / second
		v.add(min(byTime, n*micro(reservePerCall)))
		v.at, v.calls = now, calls
	}
}

func (v *reserve) add(tokens int64) { v.tokens = min(v.tokens+max(tokens, 0), v.capacity) }

// full reports whether nothing is missing.
func (v *reserve) full() bool { return v.tokens == v.capacity }
