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

// workers bound how many calls a server works on at once, and say how long that takes. The server tells its clients with each
// answer how busy it is (ORCA, gRFC A51). So their admission tells a queue, which refusals shorten, from a service that is
// merely slow. While all workers are busy, it refuses calls by their criticality, and tells clients that it did not process those.
type workers struct {
	busy  chan struct{}        // one for each call that is worked on
	pace  atomic.Pointer[pace] // changes while the server runs
	calls atomic.Int64
}

// pace is how long a call keeps a worker.
type pace struct {
	Takes     time.Duration `json:"takes"`
	Slow      time.Duration `json:"slow"` // what each SlowEvery-th call takes; 0 for none
	SlowEvery int64         `json:"slowEvery"`
}

// newWorkers makes n workers, 1 or more.
func newWorkers(n int, p pace) *workers {
	w := &workers{busy: make(chan struct{}, n)}
	w.pace.Store(&p)
	return w
}

// take takes a worker for a call. A SHEDDABLE call does not wait for one: it is refused while all are busy, so that the calls
// that wait are those which matter.
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

// work keeps the worker of a call for as long as the pace says, or until the caller has gone.
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

// report is a server interceptor that reports which part of the workers is busy.
func (w *workers) report(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	// gRPC sends a report only for calls that have asked for their recorder.
	if recorder := orca.CallMetricsRecorderFromContext(ctx); recorder != nil {
		recorder.SetApplicationUtilization(float64(len(w.busy)) / float64(cap(w.busy)))
	}
	return reply, err
}

// serverOptions are the options of a server with these workers, in the order that they need: the recorder comes first, and a
// call has its worker when its report is made. Callers are believed that their calls are CRITICAL up to highest; strangers
// should be up to policy.CriticalityDefault.
func (w *workers) serverOptions(r *interceptor.Retrier, highest policy.Criticality) []grpc.ServerOption {
	return slices.Concat(
		[]grpc.ServerOption{orca.CallMetricsServerOption(nil)},
		r.ServerOptions(interceptor.IncomingCriticality(highest), interceptor.Refuse(w.take)),
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(w.report)},
	)
}
