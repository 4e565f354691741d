// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package methods has a client's shared knowledge of the methods that it calls: how long responses take, and what their targets have
// answered.
package methods

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/internal/policies"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/policy"
)

// Method is the knowledge of a method at a target. It is safe for concurrent use.
type Method struct {
	answers   latency.Answers
	quantiles atomic.Pointer[[]*latency.Recent] // one for each hedgingQuantile
	mu        sync.Mutex                        // guards changes of quantiles
}

// New returns a method without knowledge.
func New() *Method { return new(Method) }

// mostQuantiles bounds the quantiles of one method: a caller may give every call its own policy.
const mostQuantiles = 8

// For returns the method for the calls of a policy.
func (m *Method) For(p *policy.Policy, now time.Duration) (k Known) {
	k.method = m
	if h := policies.Hedge(p); h != nil && h.Quantile > 0 {
		k.latency = m.latencyOf(h, now)
	}
	return k
}

// latencyOf returns the latencies for a hedging policy, or nil if there are too many quantiles.
func (m *Method) latencyOf(h *spec.Hedge, now time.Duration) *latency.Recent {
	if r := find(m.quantiles.Load(), h.Quantile); r != nil {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.quantiles.Load()
	if r := find(list, h.Quantile); r != nil {
		return r
	}
	var longer []*latency.Recent
	if list != nil {
		longer = append(longer, *list...)
	}
	if len(longer) >= mostQuantiles {
		return nil
	}
	r := latency.New(h.Quantile, now)
	longer = append(longer, r)
	m.quantiles.Store(&longer)
	return r
}

func find(list *[]*latency.Recent, quantile float64) *latency.Recent {
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
	latency *latency.Recent // nil: the policy has no hedgingQuantile
}

var _ attempts.Method = (*Known)(nil)

// Follows reports whether the latencies for a policy's hedgingQuantile are known, or it has none. They are not if the calls of the
// method have had too many quantiles.
func (k *Known) Follows(p *policy.Policy) bool {
	h := policies.Hedge(p)
	return h == nil || h.Quantile == 0 || k.latency != nil
}

// Any reports whether there is a method.
func (k *Known) Any() bool { return k.method != nil }

// Answered implements [attempts.Method].
func (k *Known) Answered(now time.Duration, a attempts.Answer) {
	k.method.answers.Record(a.Speed)
	if a.Accepted && k.latency != nil {
		k.latency.Record(a.Took, now)
	}
}

// Outlasted implements [attempts.Method].
func (k *Known) Outlasted(now, least time.Duration) {
	if k.latency != nil {
		k.latency.Record(least, now)
	}
}

// Evidence implements [attempts.Method].
func (k *Known) Evidence() latency.Evidence { return k.method.answers.Evidence() }

// Quantile implements [attempts.Method].
func (k *Known) Quantile() time.Duration {
	if k.latency == nil {
		return 0
	}
	return k.latency.Quantile()
}
