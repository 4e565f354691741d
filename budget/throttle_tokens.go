// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync"
	"sync/atomic"
)

// tokens are those of a throttle: 0 to capacity, in thousandths.
type tokenBucket struct {
	full atomic.Bool // written under mu, so that a successful call need not lock a full tokenBucket

	mu               sync.Mutex // guards all below
	tokens, capacity int64
}

// addTokens adds n tokens, which may be negative, within the bounds. b.mu must be held.
func (b *tokenBucket) addTokens(n int64) {
	b.tokens = min(max(b.tokens+n, 0), b.capacity)
	if full := b.tokens == b.capacity; full != b.full.Load() {
		b.full.Store(full)
	}
}

// resize changes the capacity and keeps the tokenBucket equally full, rounded down. b.mu must be held.
func (b *tokenBucket) resize(capacity int64) {
	b.tokens = b.tokens * capacity / max(b.capacity, 1) // each is at most 1e9
	b.capacity = capacity
}

// tokensAndCapacity returns tokens and capacity.
func (b *tokenBucket) tokensAndCapacity() (tokens, capacity int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens, b.capacity
}

// micro and milli convert tokens to millionths and thousandths, exactly: they have at most four decimals, or three.
func micro(tokens float64) int64 { return int64(math.Round(tokens*1e4)) * 100 }
func milli(tokens float64) int64 { return int64(math.Round(tokens * 1e3)) }
