// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"sync"
	"sync/atomic"
	"time"
)

// A quantile needs enough samples to be meaningful and recent ones to follow a service. It is read rarely, to cost nothing.
const (
	window  = 30 * time.Second // of one histogram; two count
	refresh = time.Second      // from one reading of the quantile to the next
	samples = 20               // the minimum, with one beyond the quantile
)

// Recent follows one quantile of the latencies of a method. It is safe for concurrent use.
type Recent struct {
	part     float64      // the quantile, 0 to 1
	quantile atomic.Int64 // 0: too few samples

	mu                sync.Mutex // guards all below
	current, previous Histogram
	began, read       time.Duration
	known, fresh      uint64 // samples when the quantile was read, and since then
}

// newRecent returns latencies without samples. The quantile is one of 0 to 1.
func newRecent(quantile float64, now time.Duration) *Recent {
	return &Recent{part: quantile, began: now, read: now}
}

// Part returns the quantile that was passed to New.
func (r *Recent) Part() float64 { return r.part }

// Quantile returns the latency at the quantile, or 0 if it is unknown.
func (r *Recent) Quantile() time.Duration { return time.Duration(r.quantile.Load()) }

// Record records how long an attempt took, or how long it had run when it was cancelled because another one won. The latter
// is more than the quantile, however much. If two attempts end at the same time, Record drops one rather than wait.
func (r *Recent) Record(took, now time.Duration) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if now-r.began >= window {
		r.current, r.previous = r.previous, r.current
		r.current.Reset()
		if now-r.began >= 2*window {
			r.previous.Reset()
		}
		r.began = now
	}
	r.current.Add(took)
	// The first readings have few samples, and are replaced soon.
	if r.fresh++; now-r.read >= refresh || r.fresh >= max(r.known, samples) {
		r.refresh(now)
	}
}

// refresh reads the quantile of both histograms. r.mu must be held. If a quantile were too short, hedges would
// cut off some of its samples, and it would creep down. A histogram's quantile is never too short.
func (r *Recent) refresh(now time.Duration) {
	var both Histogram
	both.AddAll(&r.previous)
	both.AddAll(&r.current)
	n := both.Count()
	r.read, r.known, r.fresh = now, n, 0
	var quantile int64
	if n >= samples && float64(n)*(1-r.part) >= 1 {
		quantile = int64(both.Quantile(r.part)) + 1 // hedge only attempts that take longer
	}
	r.quantile.Store(quantile)
}
