// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync"
	"sync/atomic"
)

// bucket holds tokens: 0 to capacity, in thousandths.
type bucket struct {
	full atomic.Bool // written under mu, so that a successful call need not lock a full bucket

	mu               sync.Mutex // guards all below
	tokens, capacity int64
}

// addTokens adds n tokens, which may be negative, within the bounds. b.mu must be held.
func (b *bucket) addTokens(n int64) {
	b.tokens = min(max(b.tokens+n, 0), b.capacity)
	if full := b.tokens == b.capacity; full != b.full.Load() {
		b.full.Store(full)
	}
}

// resize changes the capacity and keeps the bucket equally full, rounded down. b.mu must be held.
func (b *bucket) resize(capacity int64) {
	b.tokens = b.tokens * capacity / max(b.capacity, 1) // each is at most 1e9
	b.capacity = capacity
}

// tokensAndCapacity returns tokens and capacity.
func (b *bucket) tokensAndCapacity() (tokens, capacity int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens, b.capacity
}
