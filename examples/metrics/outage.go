// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/testserver"
)

// phase is how the server answers for a while.
type phase struct {
	length time.Duration
	answer testserver.Step
}

// day is what the server goes through, over and over.
var day = []phase{
	{5 * time.Second, testserver.OK()},
	{10 * time.Second, testserver.Random(1, 0.05, testserver.Fail(codes.Unavailable, "restarting"))}, // retries help
	{5 * time.Second, testserver.Random(2, 0.05, testserver.OK().Delay(300*time.Millisecond))},       // so do hedges
	{10 * time.Second, testserver.Fail(codes.Unavailable, "down")},                                   // nothing helps
}

// One call every 10 ms, of which one in 20 creates an order.
const (
	between     = 10 * time.Millisecond
	createEvery = 20
)

// play takes the server through the phases until ctx ends, while calls are made. It returns when all have ended.
func play(ctx context.Context, server *testserver.Server, conn *grpc.ClientConn, phases []phase) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(between)
	defer tick.Stop()
	for i := 0; ; i++ {
		now := phases[i%len(phases)]
		if err := server.Set("*", now.answer); err != nil {
			return err
		}
		for n := range int(now.length / between) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			method := orders.GetOrder
			if n%createEvery == 0 {
				method = orders.CreateOrder
			}
			calls.Go(func() {
				// How the call ends is what the metrics show.
				_ = conn.Invoke(context.WithoutCancel(ctx), method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
			})
		}
	}
}
