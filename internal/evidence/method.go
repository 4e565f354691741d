// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package evidence has what the last responses of a method have shown: how many of its last answers were slow, and how long responses take.
package evidence

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Answer describes the response to an attempt.
type Answer struct {
	Began    time.Duration // of the attempt
	Took     time.Duration
	Speed    Speed
	Accepted bool // a success: no error, nor a reply that means "not yet"
}

// Method is the knowledge of a method at a target. It is safe for concurrent use.
type Method struct {
	answers   Answers
	newest    atomic.Int64              // when the newest attempt began that was answered, within tick
	failing   atomic.Int64              // when it first failed since the last answer
	quantiles atomic.Pointer[[]*Recent] // one for each hedgingQuantile
	mu        sync.Mutex                // guards changes of quantiles
}

// tick is the time within which attempts began together: calls to a busy server rarely write that one was answered.
const tick = time.Millisecond

// NewMethod returns a method without knowledge.
func NewMethod() *Method {
	m := new(Method)
	m.newest.Store(math.MinInt64 / 2)
	return m
}

// mostQuantiles bounds the quantiles of one method: a caller may give every call its own policy.
const mostQuantiles = 8

// For returns the method for the calls of a policy with this hedgingQuantile, or 0.
func (m *Method) For(quantile float64, now time.Duration) (k Known) {
	k.method = m
	if quantile > 0 {
		k.latency = m.latencyOf(quantile, now)
	}
	return k
}

// latencyOf returns the latencies for a quantile, or nil if there are too many quantiles.
func (m *Method) latencyOf(quantile float64, now time.Duration) *Recent {
	if r := find(m.quantiles.Load(), quantile); r != nil {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.quantiles.Load()
	if r := find(list, quantile); r != nil {
		return r
	}
	var longer []*Recent
	if list != nil {
		longer = append(longer, *list...)
	}
	if len(longer) >= mostQuantiles {
		return nil
	}
	r := newRecent(quantile, now)
	longer = append(longer, r)
	m.quantiles.Store(&longer)
	return r
}

func find(list *[]*Recent, quantile float64) *Recent {
	if list == nil {
		return nil
	}
	for _, r := range *list {
		if r.Part() == quantile {
			return r
		}
	}
	return nil
}

// Known is a method for the calls of a policy. The zero value has no method.
type Known struct {
	method  *Method
	latency *Recent // nil: the policy has no hedgingQuantile
}

// Follows reports whether the latencies for a hedgingQuantile are followed, or it is 0. They are not if the calls of the method have had too
// many quantiles.
func (k *Known) Follows(quantile float64) bool { return quantile == 0 || k.latency != nil }

// Any reports whether there is a method.
func (k *Known) Any() bool { return k.method != nil }

// Answered implements attempts.Method.
func (k *Known) Answered(now time.Duration, a Answer) {
	k.method.answers.Record(a.Speed)
	k.Recovered()
	if old := k.method.newest.Load(); int64(a.Began)-old >= int64(tick) {
		k.method.newest.CompareAndSwap(old, int64(a.Began)) // whoever comes first: they began together
	}
	if a.Accepted && k.latency != nil {
		k.latency.Record(a.Took, now)
	}
}

// Outlasted implements attempts.Method.
func (k *Known) Outlasted(now, least time.Duration) {
	if k.latency != nil {
		k.latency.Record(least, now)
	}
}

// AnsweredSince implements attempts.Method.
func (k *Known) AnsweredSince(began time.Duration) bool {
	return k.method.newest.Load()+int64(tick) > int64(began)
}

// Evidence implements attempts.Method.
func (k *Known) Evidence() Evidence { return k.method.answers.Evidence() }

// Quantile implements attempts.Method.
func (k *Known) Quantile() time.Duration {
	if k.latency == nil {
		return 0
	}
	return k.latency.Quantile()
}

// Recovered implements attempts.Method.
func (k *Known) Recovered() {
	if k.method.failing.Load() != 0 {
		k.method.failing.Store(0)
	}
}

// Failed implements attempts.Method.
func (k *Known) Failed(now time.Duration) { k.method.failing.CompareAndSwap(0, int64(now)) }

// FailsFor implements attempts.Method.
func (k *Known) FailsFor(now time.Duration) time.Duration {
	if since := k.method.failing.Load(); since != 0 {
		return now - time.Duration(since)
	}
	return 0
}
