// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// NewContext returns a context for all attempts of one call, or for the parents of their contexts: each attempt goes to a
// backend that the others haven't used. Every call needs its own. NewContext is for interceptors that retry or hedge. It costs
// one allocation, and has no effect if the channel doesn't use the policy.
//
// A call that an inner interceptor makes with the context counts as an attempt, unless it has its own context from NewContext.
func NewContext(parent context.Context) context.Context { return &record{Context: parent} }

// record is the list of backends that a call has used. It is the context itself, to save an allocation. It is never reused for
// another call, because gRPC may keep the context of an ended attempt.
type record struct {
	context.Context

	tried tried.Backends[balancer.SubConn]
	down  atomic.Pointer[time.Time] // of the last picker; nil before the first pick
}

// DownSince returns since when the channel of ctx's call can't connect, as the policy knew at the call's last pick. It is zero if the
// channel could connect, or the policy was not asked for the call.
func DownSince(ctx context.Context) time.Time {
	if r := recordOf(ctx); r != nil {
		if down := r.down.Load(); down != nil {
			return *down
		}
	}
	return time.Time{}
}

// Unasked reports whether ctx is from [NewContext], and the policy was not asked for its call: the channel has another policy, or
// no attempt was to be sent.
func Unasked(ctx context.Context) bool {
	r := recordOf(ctx)
	return r != nil && r.down.Load() == nil
}

type recordKey struct{}

// recordOf returns the record of ctx's call, or nil.
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

// String prevents printing a context from reading fields without the lock.
func (r *record) String() string { return fmt.Sprint(r.Context) + ".WithBackends" }
