// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
)

// workers limit how many calls a server works on in parallel, and set how long each takes. While all workers are busy, calls wait, each at most for maxWait.
type workers struct {
	busy  chan struct{}        // one for each running call
	pace  atomic.Pointer[pace] // changes while the server runs
	calls atomic.Int64
}

// pace is how long a call occupies a worker.
type pace struct {
	Takes     time.Duration `json:"takes"`
	Slow      time.Duration `json:"slow"` // time of each SlowEvery-th
	SlowEvery int64         `json:"slowEvery"`
}

// newWorkers returns n workers, 1 or more.
func newWorkers(n int, p pace) *workers {
	w := &workers{busy: make(chan struct{}, n)}
	w.pace.Store(&p)
	return w
}

// work occupies a call's worker for the time of the pace, or until the caller has gone.
func (w *workers) work(ctx context.Context) error {
	p := w.pace.Load()
	takes := p.Takes
	if n := w.calls.Add(1); p.Slow > 0 && p.SlowEvery > 0 && n%p.SlowEvery == 0 {
		takes = p.Slow
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

const maxWait = 50 * time.Millisecond

// serve is a server interceptor that waits for a worker.
func (w *workers) serve(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	full := time.NewTimer(maxWait)
	defer full.Stop()
	select {
	case w.busy <- struct{}{}:
		defer func() { <-w.busy }()
	case <-full.C:
		return nil, status.Error(codes.ResourceExhausted, "all workers are busy")
	}
	return handler(ctx, request)
}

// serverOptions returns the options of a server with these workers.
func (w *workers) serverOptions(r *interceptor.Retrier) []grpc.ServerOption {
	return append(r.ServerOptions(), grpc.ChainUnaryInterceptor(w.serve))
}
