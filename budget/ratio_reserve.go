// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "time"

// reserve is a bucket of extra attempts that is full at the start and filled by calls. Unlike a rate, it gives an idle client
// nothing to spend, so the reserves of hundreds of small clients stay below the sum of their calls' shares.
type reserve struct {
	tokens, capacity int64         // micro-tokens; capacity 0: no reserve
	calls            int64         // counted so far, since the start
	at               time.Duration // when calls was counted
}

// The numbers of the default budget's reserve.
const (
	reserveTokens    = 4   // one attempt after a timeout
	reservePerSecond = 0.4 // at most, while calls come
	reservePerCall   = 0.1 // at most: the calls' share again
	reserveForgets   = 10 * time.Minute
)

// newReserve returns a full reserve, or an empty one unless bucket is true.
func newReserve(bucket bool) reserve {
	if !bucket {
		return reserve{}
	}
	return reserve{tokens: micro(reserveTokens), capacity: micro(reserveTokens)}
}

// fill adds the calls' tokens: an amount per call, bounded by the time since the previous calls. After a long idle time the
// reserve is full.
func (v *reserve) fill(now time.Duration, calls int64) {
	idle := since(now, v.at)
	switch n := calls - v.calls; {
	case v.capacity == 0:
	case idle >= reserveForgets:
		v.tokens, v.at, v.calls = v.capacity, now, calls
	case n > 0 && idle > 0:
		const second = int64(time.Second)
		byTime := int64(idle) * micro(reservePerSecond) / second
		v.addTokens(min(byTime, n*micro(reservePerCall)))
		v.at, v.calls = now, calls
	}
}

func (v *reserve) addTokens(tokens int64) { v.tokens = min(v.tokens+max(tokens, 0), v.capacity) }

// full reports whether the reserve is full.
func (v *reserve) full() bool { return v.tokens == v.capacity }
