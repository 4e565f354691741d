// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// workers limit how many calls a server works on in parallel, and set how long each takes. With each answer, the server
// reports its utilization (ORCA, gRFC A51), so that clients' admission can distinguish a queue, which refusals shorten, from
// a slow service. While all workers are busy, it refuses calls by criticality, and reports those as not processed.
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

// take acquires a worker for a call. A SHEDDABLE call does not wait for one: it is refused while all are busy, so that only
// more important calls wait.
func (w *workers) take(ctx context.Context, _ string) (release func(), err error) {
	if interceptor.CriticalityFromContext(ctx) == policy.CriticalitySheddable {
		select {
		case w.busy <- struct{}{}:
			return w.release, nil
		default:
			return nil, status.Error(codes.ResourceExhausted, "all workers are busy")
		}
	}
	select {
	case w.busy <- struct{}{}:
		return w.release, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (w *workers) release() { <-w.busy }

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

// report is a server interceptor that reports the share of busy workers.
func (w *workers) report(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	// gRPC sends a report only if a call has asked for its recorder.
	if recorder := orca.CallMetricsRecorderFromContext(ctx); recorder != nil {
		recorder.SetApplicationUtilization(float64(len(w.busy)) / float64(cap(w.busy)))
	}
	return reply, err
}

// serverOptions returns the options of a server with these workers. The order matters: the recorder comes first, and a call
// has its worker when its report is made. Callers may claim a criticality up to highest; for untrusted ones, pass
// policy.CriticalityDefault.
func (w *workers) serverOptions(r *interceptor.Retrier, highest policy.Criticality) []grpc.ServerOption {
	return slices.Concat(
		[]grpc.ServerOption{orca.CallMetricsServerOption(nil)},
		r.ServerOptions(interceptor.IncomingCriticality(highest), interceptor.Refuse(w.take)),
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(w.report)},
	)
}
