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

// inboundCall is an incoming call whose handler makes calls.
type inboundCall struct {
	gaveUp       atomic.Bool // one of them has given up
	heardRefusal atomic.Bool // one of them was refused as not processed
}

type inboundKey struct{}

// ServerOptions returns options of grpc.NewServer for a service that is also a client. If a call made in the context
// of an incoming call gives up after its retries, or because it cannot connect, and the incoming call fails, the server
// sends pushback to its caller (trailer grpc-retry-pushback-ms: -1, gRFC A6).
// gRPC clients then don't retry, so that the layers of a chain don't multiply their attempts.
//
//	grpc.NewServer(retrier.ServerOptions()...)
//
// The options work for calls of any Retrier, and cost one context value. With a [ServerOption], they refuse calls or read
// their criticality. Their interceptors are chained, in the order of the options
// given to grpc.NewServer.
func (r *Retrier) ServerOptions(options ...ServerOption) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.unaryServer(options)), grpc.ChainStreamInterceptor(r.streamServer(options))}
}

func (r *Retrier) unaryServer(options []ServerOption) grpc.UnaryServerInterceptor {
	s := newServer(options)
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
		in := new(inboundCall)
		inner := s.readCriticality(context.WithValue(ctx, inboundKey{}, in))
		trailer, err := s.handle(inner, in, func() error {
			reply, err = handle(inner, req)
			return err
		})
		if trailer != nil {
			if failed := grpc.SetTrailer(ctx, trailer); failed != nil && ctx.Err() == nil { // else the caller is gone
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
		inner := s.readCriticality(context.WithValue(stream.Context(), inboundKey{}, in))
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

// trailer returns the trailer to send with the handler's error, or nil.
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

// inbound returns the incoming call of a context, or nil if there is none.
func inbound(ctx context.Context) *inboundCall {
	in, _ := ctx.Value(inboundKey{}).(*inboundCall)
	return in
}

// noteGaveUp records in the incoming call that a call made in its context has given up.
func (c *call) noteGaveUp(end *attempts.End) {
	if in := inbound(c.ctx); in != nil && c.mode() == policy.ModeEnforce && end.GaveUp() {
		in.gaveUp.Store(true)
	}
}

// inRetry reports whether the context is that of an incoming call that is itself a retry.
func inRetry(ctx context.Context) bool {
	for _, value := range metadata.ValueFromIncomingContext(ctx, attemptsHeader) {
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return true
		}
	}
	return false
}
