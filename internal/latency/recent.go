// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package latency follows how long the attempts of a method take.
package latency

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/histogram"
)

// What a quantile is made of: enough samples for it to mean something, recent enough to follow a service, read seldom
// enough to cost nothing.
const (
	window  = 30 * time.Second // of one histogram; two count
	refresh = time.Second      // from one reading of the quantiles to the next
	samples = 20               // at least, and one beyond the quantile
)

// Recent follows the median, and one quantile, of the latencies of a method. It is safe for concurrent use.
type Recent struct {
	part             float64      // the quantile, 0 to 1; 0: none
	quantile, median atomic.Int64 // 0: too few samples

	mu                sync.Mutex // guards all below
	current, previous histogram.Histogram
	began, read       time.Duration
	known, fresh      uint64 // samples when the quantiles were read, and since then
}

// New returns latencies without samples. The quantile is one of 0 to 1; 0 is none.
func New(quantile float64, now time.Duration) *Recent {
	return &Recent{part: quantile, began: now, read: now}
}

// Part is the quantile that is followed, as New was given it.
func (r *Recent) Part() float64 { return r.part }

// Quantile is the quantile; 0 if it is not known.
func (r *Recent) Quantile() time.Duration { return time.Duration(r.quantile.Load()) }

// Median is the median; 0 if it is not known.
func (r *Recent) Median() time.Duration { return time.Duration(r.median.Load()) }

// Record takes in how long an attempt took, or has taken when it was cancelled since another had won: that
// is more than the quantile, however much. Where two attempts end at once, one is enough: nobody waits.
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
	// The first readings are of few samples, and soon outdone by better ones.
	if r.fresh++; now-r.read >= refresh || r.fresh >= max(r.known, samples) {
		r.refresh(now)
	}
}

// refresh reads the quantiles of both histograms. It requires mu. From a quantile that is too short, hedges would
// cut short some of those attempts that it is made of, and it would creep down; a histogram's never is.
func (r *Recent) refresh(now time.Duration) {
	var both histogram.Histogram
	both.AddAll(&r.previous)
	both.AddAll(&r.current)
	n := both.Count()
	r.read, r.known, r.fresh = now, n, 0
	of := func(part float64) int64 {
		if part == 0 || n < samples || float64(n)*(1-part) < 1 {
			return 0
		}
		return int64(both.Quantile(part)) + 1 // a hedge is for what takes longer
	}
	r.quantile.Store(of(r.part))
	r.median.Store(of(0.5))
}
