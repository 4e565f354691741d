// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
)

// refusedTrailer is the trailer of a call that the server did not process ([Refuse]). Its value is the request's number of
// previous attempts, a space, and the full method. So it is valid for one attempt and one hop: a
// handler that copies the trailers of its own call names another method, and a proxy that has retried names another number.
const refusedTrailer = "stagger-not-processed"

// ranHandler is the value for a processed call. It invalidates any other value with it.
const ranHandler = "no"

// Refuse lets a server shed load: take runs before the handler of each call, and before the first message of each stream.
// take gets the handler's context and the full method ("/service/method"). It may wait, and must be safe for concurrent
// use. Use [CriticalityFromContext] to decide which calls to refuse first.
//
// If take returns an error, the caller gets it with the trailer stagger-not-processed. The client then knows that the call was not processed,
// and may retry it, idempotent or not, if its policy lists the code. So neither take nor the interceptors that run before it
// may have processed any part of the call. If take returns no error, the handler runs, and then release. release may
// be nil.
func Refuse(take func(ctx context.Context, method string) (release func(), err error)) ServerOption {
	return func(s *server) { s.take = take }
}

// refusal returns the trailer of a call that was not processed. It is nil if a proxy has sent the request before: the result
// of that is unknown.
func refusal(ctx context.Context, method string) metadata.MD {
	sent := metadata.ValueFromIncomingContext(ctx, "x-envoy-attempt-count")
	if len(sent) > 0 && !slices.Equal(sent, []string{"1"}) {
		return nil
	}
	previous := "0"
	if said := metadata.ValueFromIncomingContext(ctx, attemptsHeader); len(said) > 0 {
		previous = strings.Join(said, ",")
	}
	return metadata.Pairs(refusedTrailer, previous+" "+method)
}

// refused reports whether the server did not process attempt a, by its trailer. It records any such trailer, because the
// handler that made this call may pass it on.
func (c *call) refused(a *attempt, trailer metadata.MD) bool {
	said := trailer[refusedTrailer]
	if len(said) == 0 || len(said) == 1 && said[0] == ranHandler {
		return false
	}
	if in := inbound(c.ctx); in != nil {
		in.heardRefusal.Store(true)
	}
	return len(said) == 1 && said[0] == strconv.Itoa(a.number-1)+" "+c.method &&
		!c.retrier.rules.Load().set.DeniesRefusedRetry(c.policy)
}

// bare reports whether gRPC has received only a status for an attempt, and has made, as far as is known, only one request
// for it. In a response without headers, the trailer contains their fields.
func (a *attemptOptions) bare() bool {
	return !a.repeated.Load() && a.header == nil && len(a.trailer["content-type"]) > 0
}
