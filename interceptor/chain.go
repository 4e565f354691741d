// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// inboundCall is an incoming call of a service that makes calls itself.
type inboundCall struct {
	gaveUp       atomic.Bool // one of those has given up
	heardRefusal atomic.Bool // one of those was refused as not processed
}

type inboundKey struct{}

// ServerOptions returns what grpc.NewServer needs for a service that is also a client, as [Retrier.DialOptions] does for
// clients: when a call that was made in the context of an incoming one has given up after its retries, or since it cannot
// connect, and the incoming one fails, the answer says so to the caller above (trailer grpc-retry-pushback-ms: -1, gRFC A6).
// Every gRPC client then leaves its own retries, so that the layers of a chain do not multiply.
//
//	grpc.NewServer(retrier.ServerOptions()...)
//
// They serve the calls of any Retrier, and cost one value in the context. Options have them refuse calls, and read their
// criticality. They are chained: interceptors of options before these run before them, those of options after these
// after them.
func (r *Retrier) ServerOptions(options ...ServerOption) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.unaryServer(options)), grpc.ChainStreamInterceptor(r.streamServer(options))}
}

func (r *Retrier) unaryServer(options []ServerOption) grpc.UnaryServerInterceptor {
	s := newServer(options)
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
		in := new(inboundCall)
		inner := s.read(context.WithValue(ctx, inboundKey{}, in))
		trailer, err := s.handle(inner, in, func() error {
			reply, err = handle(inner, req)
			return err
		})
		if trailer != nil {
			if failed := grpc.SetTrailer(ctx, trailer); failed != nil && ctx.Err() == nil { // else the caller has gone
				r.warnOnce(&lostTrailer, "", "", failed)
			}
		}
		return reply, err
	}
}

func (r *Retrier) streamServer(options []ServerOption) grpc.StreamServerInterceptor {
	s := newServer(options)
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		in := new(inboundCall)
		inner := s.read(context.WithValue(stream.Context(), inboundKey{}, in))
		trailer, err := s.handle(inner, in, func() error { return handle(srv, &inboundStream{stream, inner}) })
		if trailer != nil {
			stream.SetTrailer(trailer)
		}
		return err
	}
}

type inboundStream struct {
	grpc.ServerStream

	ctx context.Context
}

func (s *inboundStream) Context() context.Context { return s.ctx }

// trailer is what the answer to a call says beside the error of its handler; nil for nothing.
func (c *inboundCall) trailer(err error) metadata.MD {
	var pairs []string
	if err != nil && c.gaveUp.Load() {
		pairs = append(pairs, decision.PushbackTrailer, "-1")
	}
	if err != nil && c.heardRefusal.Load() { // which the handler may have passed on
		pairs = append(pairs, refusedTrailer, ranHandler)
	}
	if pairs == nil {
		return nil
	}
	return metadata.Pairs(pairs...)
}

// inbound is the incoming call that a call is made in; nil if there is none.
func inbound(ctx context.Context) *inboundCall {
	in, _ := ctx.Value(inboundKey{}).(*inboundCall)
	return in
}

// noteGaveUp remembers, for the answer to the incoming call that this one was made in, that this one has given up.
func (c *call) noteGaveUp(end attempts.End) {
	if in := inbound(c.ctx); in != nil && c.mode() == policy.ModeEnforce && end.GaveUp() {
		in.gaveUp.Store(true)
	}
}

// inRetry reports whether a call is made inside of an incoming one that is itself a retry.
func inRetry(ctx context.Context) bool {
	for _, value := range metadata.ValueFromIncomingContext(ctx, attemptsHeader) {
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return true
		}
	}
	return false
}
