// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Gax is a client with gax-go, as generated clients of Google's APIs use it.
func Gax() Client {
	return Client{
		grpc.NewClient,
		func(ctx context.Context, conn *grpc.ClientConn) error { return invokeGax(ctx, conn, getOrder) },
		func(ctx context.Context, conn *grpc.ClientConn) error { return invokeGax(ctx, conn, createOrder) },
	}
}

func invokeGax(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return gax.Invoke(ctx, func(ctx context.Context, _ gax.CallSettings) error {
		return call(ctx, conn, method)
	}, gax.WithRetry(func() gax.Retryer {
		return gax.OnCodes([]codes.Code{codes.Unavailable}, gax.Backoff{
			Initial: 100 * time.Millisecond, Max: time.Second, Multiplier: 2,
		})
	}))
}
