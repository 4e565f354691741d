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

// laterKey marks the context of an attempt after the first, for calls that are made inside of it.
type laterKey struct{}

// firstAttempt removes a count that is about other attempts: one that a proxy has passed on from the
// call it serves, or that of an attempt inside of which the call is made. Looking for those first
// spares every other call a copy of its outgoing metadata.
func firstAttempt(ctx context.Context) context.Context {
	if len(metadata.ValueFromIncomingContext(ctx, attemptsHeader)) == 0 && ctx.Value(laterKey{}) == nil {
		return ctx
	}
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok || len(md.Get(attemptsHeader)) == 0 {
		return ctx
	}
	md.Delete(attemptsHeader)
	return metadata.NewOutgoingContext(ctx, md)
}

// laterAttempt sets the number of attempts that went before. It begins from the caller's metadata
// each time, so that numbers do not pile up.
func laterAttempt(ctx context.Context, previous int) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok {
		md = metadata.MD{}
	}
	md.Set(attemptsHeader, strconv.Itoa(previous))
	return context.WithValue(metadata.NewOutgoingContext(ctx, md), laterKey{}, true)
}
