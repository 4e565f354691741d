// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"

	"google.golang.org/grpc/metadata"
)

// attemptsHeader tells the server how many attempts went before; the first carries none (gRFC A6).
const attemptsHeader = "grpc-previous-rpc-attempts"

// numberKey holds the number of an attempt in its context, from the second on.
type numberKey struct{}

// AttemptFromContext returns which attempt of its call a context belongs to: 1 is the first, and what every context
// has that comes from no Retrier. Hedges and attempts of streams count alike; a hedge was sent beside others, which had not
// answered in time. It is for what runs once an attempt: inner interceptors, credentials (grpc.WithPerRPCCredentials), stats
// handlers.
func AttemptFromContext(ctx context.Context) (number int, hedge bool) {
	switch n := ctx.Value(numberKey{}).(type) {
	case int:
		return n, false
	case hedgeNumber:
		return int(n), true
	default:
		return 1, false
	}
}

// hedgeNumber is the number of an attempt that is a hedge.
type hedgeNumber int

// firstAttempt removes a count that is about other attempts: one that a proxy has passed on from the
// call it serves, or that of an attempt inside of which the call is made. Looking for those first
// spares every other call a copy of its outgoing metadata.
func firstAttempt(ctx context.Context) context.Context {
	inside := ctx.Value(numberKey{}) != nil
	if len(metadata.ValueFromIncomingContext(ctx, attemptsHeader)) == 0 && !inside {
		return ctx
	}
	if inside {
		ctx = context.WithValue(ctx, numberKey{}, 1)
	}
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok || len(md.Get(attemptsHeader)) == 0 {
		return ctx
	}
	md.Delete(attemptsHeader)
	return metadata.NewOutgoingContext(ctx, md)
}

// laterAttempt sets the number of attempts that went before, and marks a hedge. It begins from the caller's metadata
// each time, so that numbers do not pile up.
func laterAttempt(ctx context.Context, previous int, hedge bool) context.Context {
	if md, ok := metadata.FromOutgoingContext(ctx); ok && len(md.Get(attemptsHeader)) > 0 {
		md.Delete(attemptsHeader)
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, attemptsHeader, strconv.Itoa(previous))
	if hedge {
		return context.WithValue(ctx, numberKey{}, hedgeNumber(previous+1))
	}
	return context.WithValue(ctx, numberKey{}, previous+1)
}
