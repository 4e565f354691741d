// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package utilization is a server that tells its clients how busy it is, with each answer (ORCA, gRFC A51). So their
// admission tells a queue, which refusals shorten, from a service that is merely slow.
package utilization

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
)

// Workers bound how many calls a server works on at once. It is safe for concurrent use.
type Workers struct {
	busy chan struct{} // one for each call that is worked on
}

// NewWorkers makes n workers, 1 or more.
func NewWorkers(n int) *Workers { return &Workers{busy: make(chan struct{}, n)} }

// Unary is a server interceptor. A call waits for a worker, and its answer reports which part of the workers is busy.
func (w *Workers) Unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	select {
	case w.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-w.busy }()
	reply, err := handler(ctx, request)
	// gRPC sends a report only for calls that have asked for their recorder.
	if recorder := orca.CallMetricsRecorderFromContext(ctx); recorder != nil {
		recorder.SetApplicationUtilization(float64(len(w.busy)) / float64(cap(w.busy)))
	}
	return reply, err
}

// ServerOptions are the options of a server with these workers, in the order that they need: the recorder comes first.
func (w *Workers) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{orca.CallMetricsServerOption(nil), grpc.ChainUnaryInterceptor(w.Unary)}
}
