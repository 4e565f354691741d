// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/histogram"
	"github.com/stagger-go/stagger/policy"
)

// What a latency is made of: enough samples for the quantile to mean something, recent enough to follow a
// service, read seldom enough to cost nothing.
const (
	latencyWindow  = 30 * time.Second // of one histogram; two count
	latencyRefresh = time.Second      // from one reading of the quantile to the next
	latencySamples = 20               // at least, and one beyond the quantile
)

// latencyKey names a latency. Methods that find no place in the table have hedgingDelay.
type latencyKey struct {
	quantile       float64
	target, method string
}

// latency follows one quantile of the latencies of a method.
type latency struct {
	key   latencyKey
	delay atomic.Int64 // the quantile, in nanoseconds; 0: too few samples

	mu                sync.Mutex // guards all below
	current, previous histogram.Histogram
	began, read       time.Duration
	known, fresh      uint64 // samples when the quantile was read, and since then
}

func newLatency(key latencyKey) *latency {
	now := budget.Now()
	return &latency{key: key, began: now, read: now}
}

// record takes in how long an attempt took, or has taken when it was cancelled since another had won: that
// is more than the quantile, however much. Where two attempts end at once, one is enough: nobody waits.
func (l *latency) record(took, now time.Duration) {
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if now-l.began >= latencyWindow {
		l.current, l.previous = l.previous, l.current
		l.current.Reset()
		if now-l.began >= 2*latencyWindow {
			l.previous.Reset()
		}
		l.began = now
	}
	l.current.Add(took)
	// The first readings are of few samples, and soon outdone by better ones.
	if l.fresh++; now-l.read >= latencyRefresh || l.fresh >= max(l.known, latencySamples) {
		l.refresh(now)
	}
}

// refresh reads the quantile of both histograms. It requires mu. From a quantile that is too short, hedges would
// cut short some of those attempts that it is made of, and it would creep down; a histogram's never is.
func (l *latency) refresh(now time.Duration) {
	var both histogram.Histogram
	both.AddAll(&l.previous)
	both.AddAll(&l.current)
	q, n := l.key.quantile, both.Count()
	l.read, l.known, l.fresh = now, n, 0
	if n < latencySamples || float64(n)*(1-q) < 1 {
		l.delay.Store(0)
		return
	}
	l.delay.Store(int64(both.Quantile(q)) + 1) // a hedge is for what takes longer
}

// hedgeDelay is the latency of a method as an engine asks for it: the quantile, within the policy's bounds.
type hedgeDelay struct {
	*latency

	spec *policy.QuantileSpec
}

var _ attempts.Latency = (*hedgeDelay)(nil)

// HedgeAfter implements [attempts.Latency].
func (d *hedgeDelay) HedgeAfter() time.Duration {
	delay := time.Duration(d.delay.Load())
	if delay == 0 {
		return 0
	}
	delay = max(delay, d.spec.Min)
	if d.spec.Max > 0 {
		delay = min(delay, d.spec.Max)
	}
	return delay
}

// Record implements [attempts.Latency].
func (d *hedgeDelay) Record(took, now time.Duration) { d.record(took, now) }
