// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"

	"google.golang.org/grpc/metadata"
)

// attemptsHeader has the number of previous attempts; the first attempt doesn't send it (gRFC A6).
const attemptsHeader = "grpc-previous-rpc-attempts"

// numberKey holds the number of an attempt in its context, from the second on.
type numberKey struct{}

// AttemptFromContext returns the number of the attempt that a context belongs to: 1 for the first, and for every context
// that doesn't come from a Retrier. Hedges and attempts of streams count too. A hedge was sent in parallel with attempts that had
// not answered in time. Use it in code that runs once per attempt: inner interceptors, credentials
// (grpc.WithPerRPCCredentials), stats handlers.
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

// firstAttempt removes the count of other attempts: one that a proxy has passed on from the
// call it serves, or that of an attempt inside of which the call is made. It looks for those first, so that
// all other calls need no copy of their outgoing metadata.
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

// laterAttempt sets the number of previous attempts, and marks a hedge. It starts from the caller's metadata
// each time, so that numbers don't accumulate.
func laterAttempt(ctx context.Context, previous int, hedge bool) context.Context {
	md, given := metadata.FromOutgoingContext(ctx)
	switch {
	case !given && previous < len(previousAttempts):
		ctx = metadata.NewOutgoingContext(ctx, previousAttempts[previous])
	case len(md.Get(attemptsHeader)) > 0:
		md.Set(attemptsHeader, strconv.Itoa(previous))
		ctx = metadata.NewOutgoingContext(ctx, md)
	default:
		ctx = metadata.AppendToOutgoingContext(ctx, attemptsHeader, strconv.Itoa(previous))
	}
	if hedge {
		return context.WithValue(ctx, numberKey{}, hedgeNumber(previous+1))
	}
	return context.WithValue(ctx, numberKey{}, previous+1)
}

// previousAttempts has the metadata of attempts without other metadata, by the number of previous attempts. It never changes.
var previousAttempts = [...]metadata.MD{1: {attemptsHeader: {"1"}}, 2: {attemptsHeader: {"2"}}, 3: {attemptsHeader: {"3"}}, 4: {attemptsHeader: {"4"}}}
