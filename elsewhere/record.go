// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"fmt"
	"net"
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

	tried  tried.Backends[balancer.SubConn]
	picker atomic.Pointer[picker] // the last one; nil before the first pick
}

// NewContext implements [balancing.Hook].
func (builder) NewContext(parent context.Context) context.Context { return NewContext(parent) }

// LastPick implements [balancing.Hook].
func (builder) LastPick(ctx context.Context) (picked bool, downSince time.Time) {
	r := recordOf(ctx)
	if r == nil {
		return false, time.Time{}
	}
	p := r.picker.Load()
	if p == nil {
		return false, time.Time{}
	}
	return true, p.down
}

// LastBackend implements [balancing.Hook].
func (builder) LastBackend(ctx context.Context) net.Addr {
	r := recordOf(ctx)
	if r == nil {
		return nil
	}
	p := r.picker.Load()
	backend, picked := r.tried.Last()
	if p == nil || !picked {
		return nil
	}
	address := p.of.addressOf(backend)
	if address == "" {
		return nil
	}
	return backendAddress(address)
}

// backendAddress is the address of a backend as the resolver names it.
type backendAddress string

// Network implements [net.Addr].
func (backendAddress) Network() string { return "tcp" }

func (a backendAddress) String() string { return string(a) }

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
