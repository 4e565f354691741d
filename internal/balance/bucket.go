// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"sync"
	"sync/atomic"
)

// bucket holds tokens: 0 to capacity, in thousandths.
type bucket struct {
	full atomic.Bool // written under mu: a call that succeeds need not lock a full bucket

	mu               sync.Mutex // guards all below
	tokens, capacity int64
}

// add changes the tokens by n, which may be negative, within the bounds. It requires mu.
func (b *bucket) add(n int64) {
	b.tokens = min(max(b.tokens+n, 0), b.capacity)
	if full := b.tokens == b.capacity; full != b.full.Load() {
		b.full.Store(full)
	}
}

// resize keeps the bucket as full as it is, rounded down. It requires mu.
func (b *bucket) resize(capacity int64) {
	b.tokens = b.tokens * capacity / max(b.capacity, 1) // each is 1e9 at most
	b.capacity = capacity
}

// read returns what the bucket holds.
func (b *bucket) read() (tokens, capacity int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens, b.capacity
}
