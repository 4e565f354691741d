// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Loop is a client whose program retries.
func Loop() Client { return Client{grpc.NewClient, getInLoop, createInLoop} }

func getInLoop(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for attempt := range 4 {
		if err = get(ctx, conn); status.Code(err) != codes.Unavailable {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond << attempt):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func createInLoop(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for range 4 {
		if err = create(ctx, conn); status.Code(err) != codes.Unavailable {
			break
		}
	}
	return err
}
