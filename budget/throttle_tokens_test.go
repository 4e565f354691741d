// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	var b tokenBucket
	for i, c := range []struct {
		do     func(n int64)
		n      int64
		tokens int64
		full   bool
	}{
		{b.resize, 1000, 0, false},
		{b.addTokens, 2000, 1000, true},
		{b.resize, 3000, 3000, true},
		{b.addTokens, -1, 2999, false},
		{b.resize, 300, 299, false}, // rounded down
		{b.addTokens, -1000, 0, false},
		{b.resize, 1e9, 0, false},
		{b.addTokens, 1e9, 1e9, true},
	} {
		c.do(c.n)
		if b.tokens != c.tokens || b.full.Load() != c.full {
			t.Errorf("step %d: %d tokens, full %v; want %d, %v", i, b.tokens, b.full.Load(), c.tokens, c.full)
		}
	}
}

// With a full tokenBucket, a successful call returns although another goroutine has the lock.
func TestTokens_FullAreIsOnlyRead(t *testing.T) {
	t.Parallel()
	th := throttle(t, 10, 1)
	th.bucket.mu.Lock()
	defer th.bucket.mu.Unlock()
	th.Observe(t0, EventCallSucceeded) // otherwise the test hangs
}
