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

// refusedTrailer is the trailer by which a server says that it did not process a call ([Refuse]). Its value is the number
// of attempts that the request says went before it, a space, and the full method. So it holds for one attempt and one hop: a
// handler that copies the trailers of a call of its own names another method, and a proxy that has retried another number.
const refusedTrailer = "stagger-not-processed"

// ranHandler is the value for a call that was processed. Beside another value, it spoils that.
const ranHandler = "no"

// Refuse has take decide on each call before its handler runs, and on each stream before its first message: a server that
// sheds load. take gets the handler's context and the full method ("/service/method"); [CriticalityFromContext] says which
// calls to refuse first. It may wait, and must be safe for concurrent use.
//
// If take returns an error, the caller gets that, with the trailer stagger-not-processed: the client then knows that the call was not processed,
// and may retry it, whatever the method, if its policy lists the code. So nothing of the call may have been done by then, by
// take or by interceptors that run before this one. If take returns no error, the handler runs, and then release; release may
// be nil.
func Refuse(take func(ctx context.Context, method string) (release func(), err error)) ServerOption {
	return func(s *server) { s.take = take }
}

// refusal is the trailer of a call that was not processed; nil if a proxy says that it has sent the request before: nobody
// knows what became of that.
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

// refused reports whether a server says of attempt a that it did not process it. That it says so of any call is noted: the
// handler that made this one may pass it on.
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

// bare reports whether gRPC has brought nothing of an attempt but a status, and has made one request for it, as far as it
// tells. In a response without headers, what stands in their place is in the trailer.
func (a *attemptOptions) bare() bool {
	return !a.repeated.Load() && a.header == nil && len(a.trailer["content-type"]) > 0
}
