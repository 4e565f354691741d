// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"

	"github.com/stagger-go/stagger/internal/tools/queue"
)

// reporting implements [outage.Client]'s Reports. The server reports its load with each answer, for gRPC's
// weighted_round_robin: its requests per worker, and the requests served per second since it began.
func reporting(q *queue.Queue, workers int) []grpc.ServerOption {
	began := time.Now()
	report := func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		err := handle(server, stream)
		if recorder := orca.CallMetricsRecorderFromContext(stream.Context()); recorder != nil {
			load := q.Load()
			recorder.SetApplicationUtilization(float64(1+load.Busy+load.Waiting) / float64(workers))
			recorder.SetQPS(float64(1+load.Served) / max(time.Since(began).Seconds(), 1))
		}
		return err
	}
	return []grpc.ServerOption{orca.CallMetricsServerOption(nil), grpc.ChainStreamInterceptor(report)}
}
