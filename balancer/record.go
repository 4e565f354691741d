// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"google.golang.org/grpc/balancer"
)

// NewContext returns a context for all attempts of one call, or for contexts made from it: each attempt goes to a
// backend that the others did not go to. Every call needs its own. It is for interceptors that retry or hedge, costs one
// allocation, and does nothing where the channel does not have the policy.
//
// A call that an inner interceptor makes with the context counts as an attempt, unless it has a context of its own.
func NewContext(parent context.Context) context.Context { return &record{Context: parent} }

// maxBackends bounds a record. A call that goes to more forgets the one that it used longest ago, which is next anyway
// when all were tried.
const maxBackends = 8

// record is what a call remembers: the backends that it went to. It is the context itself, so that both are one
// allocation. It is not used again for another call, since gRPC may keep the context of an attempt that has ended.
type record struct {
	context.Context

	mu   sync.Mutex
	n    int
	used [maxBackends]balancer.SubConn // the first n, in order of use
}

type recordKey struct{}

// recordOf returns the record of the call that ctx belongs to, or nil.
func recordOf(ctx context.Context) *record {
	if ctx == nil {
		return nil
	}
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

func (r *record) Value(key any) any {
	if _, ok := key.(recordKey); ok {
		return r
	}
	return r.Context.Value(key)
}

// String keeps those who print contexts from reading fields without the lock.
func (r *record) String() string { return fmt.Sprint(r.Context) + ".WithBackends" }

// claim notes that an attempt goes to the backend, and returns true, unless one went there before. Test and note are
// one step, so that of two hedges that start together only one gets the backend.
func (r *record) claim(backend balancer.SubConn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.used[:r.n], backend) {
		return false
	}
	r.add(backend)
	return true
}

// claimOldest notes that an attempt goes to that backend of the picks that was used longest ago, and returns the
// index of its first pick. What the record has forgotten was used before all that it knows.
func (r *record) claimOldest(picks []balancer.PickResult) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest, use := 0, math.MaxInt
	for i, pick := range picks {
		if at := slices.Index(r.used[:r.n], pick.SubConn); at < use {
			oldest, use = i, at
		}
	}
	if use >= 0 {
		r.remove(use)
	}
	r.add(picks[oldest].SubConn)
	return oldest
}

func (r *record) add(backend balancer.SubConn) {
	if r.n == maxBackends {
		r.remove(0)
	}
	r.used[r.n] = backend
	r.n++
}

func (r *record) remove(i int) {
	copy(r.used[i:], r.used[i+1:r.n])
	r.n--
}
