// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// With one shard all goroutines write one counter.
func TestDepositsLoseNoCall(t *testing.T) {
	t.Parallel()
	d := deposits{shards: make([]shard, 1)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50_000 {
				d.add(3)
			}
		})
	}
	wg.Wait()
	if got := d.sum(3); got != 400_000 {
		t.Errorf("sum %d; want 400000", got)
	}
}

// Two goroutines wait for each new epoch, and are both the first to write to it.
func TestDepositsLoseNoCallWhenSlotsTurnOver(t *testing.T) {
	t.Parallel()
	const epochs = 5000
	d := deposits{shards: make([]shard, 1)}
	var epoch, done atomic.Uint64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for e := uint64(1); e <= epochs; e++ {
				for epoch.Load() < e {
					runtime.Gosched()
				}
				d.add(e)
				done.Add(1)
			}
		})
	}
	for e := uint64(1); e <= epochs; e++ {
		epoch.Store(e)
		for done.Load() < 2*e {
			runtime.Gosched()
		}
		if got, want := d.sum(e), int64(2*min(e, slots)); got != want {
			t.Errorf("epoch %d: sum %d; want %d", e, got, want)
		}
	}
	wg.Wait()
}

// The number of shards is a power of two, or the mask would leave some unused.
func TestDepositsUseEveryShard(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 8, 64} {
		d := deposits{shards: make([]shard, n)}
		for range 100 * n {
			d.add(0)
		}
		for i := range d.shards {
			if d.shards[i].ring[0].Load() == 0 {
				t.Errorf("shard %d of %d is empty", i, n)
			}
		}
	}
	if n := len(newDeposits().shards); n&(n-1) != 0 || n == 0 {
		t.Errorf("%d shards; want a power of two", n)
	}
}
