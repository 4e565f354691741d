// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// With one shard all goroutines write one counter. Not parallel, as all stress here: beside other
// tests a goroutine has its processor to itself, and meets nobody.
func TestDepositsLoseNoCall(t *testing.T) {
	d := deposits{shards: make([]shard, 1)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200_000 {
				d.add(3, 0)
			}
		})
	}
	wg.Wait()
	if got := d.sum(3); got != 1_600_000 {
		t.Errorf("sum %d; want 1600000", got)
	}
}

// Two goroutines wait for each other before each new epoch, and are both the first to write to it.
func TestDepositsLoseNoCallWhenSlotsTurnOver(t *testing.T) {
	const epochs = 50_000
	d := deposits{shards: make([]shard, 1)}
	var arrived atomic.Uint64
	meet := func(n uint64) {
		arrived.Add(1)
		for arrived.Load() < n {
			runtime.Gosched()
		}
	}
	add := func(epoch uint64) {
		meet(4*epoch + 2)
		d.add(epoch, 0)
		meet(4*epoch + 4)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range uint64(epochs) {
			add(e)
		}
	})
	var lost int64
	for e := range uint64(epochs) {
		add(e)
		lost += int64(2*min(e+1, slots)) - d.sum(e)
	}
	wg.Wait()
	if lost != 0 {
		t.Errorf("%d calls lost", lost)
	}
}

// Whatever the clock's grain, no shard has twice its part of the calls or less than half.
func TestDepositsSpreadOverShards(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 8, 64} {
		for _, grain := range []time.Duration{1, 41, 100, time.Microsecond, time.Millisecond} {
			d := deposits{shards: make([]shard, n)}
			for i := range 100 * n {
				d.add(0, time.Duration(i)*grain)
			}
			for i := range d.shards {
				if calls := d.shards[i].ring[0].Load(); calls < 50 || calls > 200 {
					t.Errorf("grain %v: shard %d of %d has %d calls; want about 100", grain, i, n, calls)
				}
			}
		}
	}
	if n := len(newDeposits().shards); n&(n-1) != 0 || n == 0 {
		t.Errorf("%d shards; want a power of two", n)
	}
}
