// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/decision"
)

// inboundCall is an incoming call whose handler makes calls.
type inboundCall struct {
	marks  atomic.Int64             // how many methods gaveUp has: most calls need no lock
	mu     sync.Mutex               // guards changes of marks, and below
	gaveUp map[string]time.Duration // by method: when the last of its calls gave up
	over   bool
}

// noteGaveUp records that a call of a method has given up now.
func (in *inboundCall) noteGaveUp(method string, now time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over {
		return
	}
	if in.gaveUp == nil {
		in.gaveUp = map[string]time.Duration{}
	}
	in.gaveUp[method] = now
	in.setMarks(len(in.gaveUp))
}

// noteSucceeded records that a call of a method has succeeded: its handler does not fail because an earlier one gave up. A call that began
// before that, in parallel, says nothing of it.
func (in *inboundCall) noteSucceeded(method string, began time.Duration) {
	if in.marks.Load() == 0 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	at, marked := in.gaveUp[method]
	if !marked || began < at {
		return
	}
	delete(in.gaveUp, method)
	in.setMarks(len(in.gaveUp))
}

// end removes the marks.
func (in *inboundCall) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.over = true
	in.gaveUp = nil
	in.setMarks(0)
}

// setMarks sets the number of marks, also in the sum of the process. in.mu must be held.
func (in *inboundCall) setMarks(n int) { allMarks.Add(int64(n) - in.marks.Swap(int64(n))) }

// allMarks is the number of marks of all incoming calls that run. In healthy times there are none, and a call that succeeds doesn't look for
// the incoming one.
var allMarks atomic.Int64

// forget takes all marks back.
func (in *inboundCall) forget() {
	if in.marks.Load() == 0 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.gaveUp)
	in.setMarks(0)
}

type inboundKey struct{}

// ServerOptions returns options of grpc.NewServer for a service that is also a client. If a call made in the context of an incoming call
// gives up after its retries, or because it cannot connect, and the incoming call fails, the server sends pushback to its caller (trailer
// grpc-retry-pushback-ms: -1, gRFC A6). gRPC clients then don't retry, so that the layers of a chain don't multiply their attempts. A call
// with [Optional] doesn't count. Neither does a call if another call of the same method begins later and succeeds, unless the handler returns
// the first one's error, or if a streaming handler then sends a message. Marks go by method, not by target.
//
//	grpc.NewServer(retrier.ServerOptions()...)
//
// The options work for calls of any Retrier, and add one context value to each incoming call. Their interceptors are chained, in the order
// of the options given to grpc.NewServer.
func (r *Retrier) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(serveUnary), grpc.ChainStreamInterceptor(serveStream)}
}

func serveUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	in := new(inboundCall)
	err = in.serve(func() error {
		reply, err = handle(context.WithValue(ctx, inboundKey{}, in), req)
		return err
	}, func(trailer metadata.MD) { _ = grpc.SetTrailer(ctx, trailer) }) // it fails only without a server
	return reply, err
}

func serveStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	in := new(inboundCall)
	inner := &inboundStream{stream, in, context.WithValue(stream.Context(), inboundKey{}, in)}
	return in.serve(func() error { return handle(srv, inner) }, stream.SetTrailer)
}

type inboundStream struct {
	grpc.ServerStream

	in  *inboundCall
	ctx context.Context
}

func (s *inboundStream) Context() context.Context { return s.ctx }

// SendMsg sends a message: the handler has got over the calls that gave up before. What ends its stream later, perhaps after hours, must not
// forbid a watch to resume.
func (s *inboundStream) SendMsg(m any) error {
	s.in.forget()
	return s.ServerStream.SendMsg(m)
}

// serve runs the handler of the call. If it fails after one of its calls has given up, serve sets the trailer. A handler
// that panics fails as well: an outer interceptor may recover.
func (in *inboundCall) serve(handler func() error, setTrailer func(metadata.MD)) error {
	failed, itsOwn := true, false
	defer func() {
		if failed && (itsOwn || in.marks.Load() > 0) {
			setTrailer(metadata.Pairs(decision.PushbackTrailer, "-1"))
		}
		in.end()
	}()
	err := handler()
	failed, itsOwn = err != nil, ofGivenUp(err)
	return err
}

// ofGivenUp reports whether err is or wraps the error of a call that has given up in an incoming call: its handler has not got over it.
func ofGivenUp(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.gaveUp
}

// inbound returns the incoming call of a context, or nil if there is none.
func inbound(ctx context.Context) *inboundCall {
	in, _ := ctx.Value(inboundKey{}).(*inboundCall)
	return in
}

// attemptsHeader has the number of previous attempts; the first attempt doesn't send it (gRFC A6).
const attemptsHeader = "grpc-previous-rpc-attempts"

// inRetry reports whether the context is that of an incoming call that is itself a retry.
func inRetry(ctx context.Context) bool {
	for _, value := range metadata.ValueFromIncomingContext(ctx, attemptsHeader) {
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return true
		}
	}
	return false
}
