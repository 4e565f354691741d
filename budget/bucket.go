// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// bucket holds tokens, 0 to most, and what S says of them. A reload changes tokens and settings in one
// step: whoever takes or adds tokens does so before or after it, and never to the old ones at new prices.
type bucket[S comparable] struct {
	now    atomic.Pointer[held[S]]
	reload sync.Mutex // one at a time
}

// held is a bucket between two reloads.
type held[S comparable] struct {
	settings S
	most     int64
	tokens   atomic.Int64 // milli-tokens, so that three decimals are exact; gone after a reload
}

// tokenInMilli is one token in milli-tokens, the unit in which buckets count.
const tokenInMilli = 1000

// gone stands where tokens were that a reload has taken over.
const gone = -1

// fill makes it a full bucket.
func (b *bucket[S]) fill(s S, most int64) {
	h := &held[S]{settings: s, most: most}
	h.tokens.Store(most)
	b.now.Store(h)
}

// look is the bucket and the tokens in it. It waits for a reload that is at work, for nanoseconds.
func (b *bucket[S]) look() (*held[S], int64) {
	for {
		h := b.now.Load()
		if tokens := h.tokens.Load(); tokens != gone {
			return h, tokens
		}
		runtime.Gosched()
	}
}

// change adds n to the tokens, within the bounds, and writes only if that changes anything. It reports
// whether the tokens were still those: if not, look again.
func (h *held[S]) change(tokens, n int64) bool {
	fresh := min(max(tokens+n, 0), h.most)
	return fresh == tokens || h.tokens.CompareAndSwap(tokens, fresh)
}

// become changes the settings. The bucket stays as full as it was, in parts of most, rounded down.
func (b *bucket[S]) become(s S, most int64) {
	b.reload.Lock()
	defer b.reload.Unlock()
	old := b.now.Load()
	if old.settings == s && old.most == most {
		return
	}
	fresh := &held[S]{settings: s, most: most}
	fresh.tokens.Store(old.tokens.Swap(gone) * most / old.most) // each is 1e9 at most
	b.now.Store(fresh)
}
