// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package utilization is a server that tells its clients how busy it is, with each answer (ORCA, gRFC A51). So their
// admission tells a queue, which refusals shorten, from a service that is merely slow. While it is busy it refuses calls
// by their criticality, and tells clients that it did not process those.
package utilization

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Workers bound how many calls a server works on at once. It is safe for concurrent use.
type Workers struct {
	busy chan struct{} // one for each call that is worked on
}

// NewWorkers makes n workers, 1 or more.
func NewWorkers(n int) *Workers { return &Workers{busy: make(chan struct{}, n)} }

// take takes a worker for a call. A SHEDDABLE call does not wait for one: it is refused while all are busy, so that the calls
// that wait are those which matter.
func (w *Workers) take(ctx context.Context, _ string) (release func(), err error) {
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

func (w *Workers) release() { <-w.busy }

// report is a server interceptor that reports which part of the workers is busy.
func (w *Workers) report(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	// gRPC sends a report only for calls that have asked for their recorder.
	if recorder := orca.CallMetricsRecorderFromContext(ctx); recorder != nil {
		recorder.SetApplicationUtilization(float64(len(w.busy)) / float64(cap(w.busy)))
	}
	return reply, err
}

// ServerOptions are the options of a server with these workers, in the order that they need: the recorder comes first, and a
// call has its worker when its report is made. Callers are believed that their calls are CRITICAL up to highest; strangers
// should be up to policy.CriticalityDefault.
func (w *Workers) ServerOptions(r *interceptor.Retrier, highest policy.Criticality) []grpc.ServerOption {
	return slices.Concat(
		[]grpc.ServerOption{orca.CallMetricsServerOption(nil)},
		r.ServerOptions(interceptor.IncomingCriticality(highest), interceptor.Refuse(w.take)),
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(w.report)},
	)
}
