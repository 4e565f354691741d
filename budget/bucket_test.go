// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync"
	"testing"
)

// Who has looked at a bucket before a reload must look again: what it holds now is elsewhere.
func TestABucketThatWasReplacedGivesAndTakesNothing(t *testing.T) {
	t.Parallel()
	var b bucket[throttling]
	b.fill(throttling{1}, 1000)
	old, tokens := b.look()
	b.become(throttling{2}, 500)
	if old.change(tokens, -1) {
		t.Error("tokens are taken from a bucket that was replaced")
	}
	if now, tokens := b.look(); now == old || tokens != 500 || now.settings.ratio != 2 {
		t.Errorf("%d tokens, ratio %d; want 500 and 2", tokens, now.settings.ratio)
	}
}

// One takes tokens and the other doubles and halves the bucket: each is known to have been taken at the
// size of its time.
func TestABucketKeepsItsPartsUnderReloads(t *testing.T) {
	var b bucket[throttling]
	b.fill(throttling{1}, 1e6)
	var parts int64 // taken, in millionths of the bucket
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20_000 {
			size := int64(1 + i%2)
			b.become(throttling{size}, size*1e6)
		}
	})
	for parts < 50_000 {
		if h, tokens := b.look(); h.change(tokens, -h.settings.ratio) {
			parts++
		}
	}
	wg.Wait()
	b.become(throttling{1}, 1e6)
	if _, tokens := b.look(); tokens != 1e6-parts {
		t.Errorf("%d tokens; want %d", tokens, 1_000_000-parts)
	}
}
