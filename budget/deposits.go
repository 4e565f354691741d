// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// deposits counts the calls of the window. Every call writes here, so the counters are spread over
// shards: goroutines on different processors seldom meet at one cache line.
type deposits struct {
	shards []shard // a power of two
}

// shard is a ring of counters. Each packs its epoch and the calls in it, so that a call is never
// counted in an epoch other than its own. 32 bits of epochs last 13 years at the shortest window.
type shard struct {
	ring [slots]atomic.Uint64
	_    [128 - slots*8]byte // two cache lines: processors fetch neighbours in pairs
}

func newDeposits() deposits { return deposits{shards: make([]shard, spreadOver())} }

// add counts one call of an epoch. The time since the epochs began picks the shard.
func (d *deposits) add(epoch uint64, since time.Duration) {
	s := &d.shards[pick(since, len(d.shards))]
	counter := &s.ring[epoch%slots]
	for {
		old := counter.Load()
		counted := old + 1
		switch held := old >> 32; {
		case held > epoch:
			return // this goroutine's clock is a window behind: its call has expired
		case held < epoch:
			counted = epoch<<32 | 1
		}
		if counter.CompareAndSwap(old, counted) {
			return
		}
	}
}

// put counts calls of an epoch that were counted elsewhere, before anybody else counts here.
func (d *deposits) put(epoch uint64, calls int64) {
	counter := &d.shards[0].ring[epoch%slots]
	counter.Store(epoch<<32 | min(counter.Load()&math.MaxUint32+uint64(calls), math.MaxUint32)) //nolint:gosec // not negative
}

// of is the number of calls of one epoch.
func (d *deposits) of(epoch uint64) int64 {
	var n int64
	for i := range d.shards {
		if counter := d.shards[i].ring[epoch%slots].Load(); counter>>32 == epoch {
			n += int64(counter & math.MaxUint32)
		}
	}
	return n
}

// sum is the number of calls in the window that ends with epoch.
func (d *deposits) sum(epoch uint64) int64 {
	var n int64
	for i := range d.shards {
		for j := range d.shards[i].ring {
			counter := d.shards[i].ring[j].Load()
			if within(counter>>32, epoch) {
				n += int64(counter & (1<<32 - 1))
			}
		}
	}
	return n
}
