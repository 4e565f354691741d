// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"

	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// NewContext returns a context for all attempts of one call, or for contexts made from it: each attempt goes to a
// backend that the others did not go to. Every call needs its own. It is for interceptors that retry or hedge, costs one
// allocation, and does nothing where the channel does not have the policy.
//
// A call that an inner interceptor makes with the context counts as an attempt, unless it has a context of its own.
func NewContext(parent context.Context) context.Context { return &record{Context: parent} }

// record is what a call remembers: the backends that it went to. It is the context itself, so that both are one
// allocation. It is not used again for another call, since gRPC may keep the context of an attempt that has ended.
type record struct {
	context.Context

	tried tried.Backends[balancer.SubConn]
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
