// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A call whose context ends says what it waited for, as far as gRPC tells.
func TestError_WaitedFor(t *testing.T) {
	for name, row := range map[string]struct {
		before func(t *testing.T, s *scene)
		want   string
	}{
		"a response":                       {func(_ *testing.T, s *scene) { s.On(get, testserver.Hang()) }, "response"},
		"a response to the second attempt": {func(_ *testing.T, s *scene) { s.On(get, restarting, testserver.Hang()) }, "response"},
		"a backoff":                        {func(_ *testing.T, s *scene) { s.On(get, restarting.Pushback("700")) }, "backoff"},
		"a connection":                     {func(_ *testing.T, s *scene) { s.leave() }, "connection"},
		"a connection that comes too late": {comesLate, "connection"},
		"addresses of a name":              {resolveNothing, "connection"},
		"a free stream":                    {oneStream, "stream"},
		"an answer to another call":        {failAll, "answer"},
		"an inner interceptor":             {waitInside, ""},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, everywhere(), func(t *testing.T, s scene) {
					row.before(t, &s)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					defer time.AfterFunc(500*ms, cancel).Stop()
					err := exchange(ctx, s.conn, desc, get)
					e, ok := errors.AsType[*interceptor.Error](err)
					if !ok || e.WaitedFor != row.want || status.Code(err) != codes.Canceled {
						t.Fatalf("%v: %+v; want it to have waited for %q", err, e, row.want)
					}
					const limited = "; no stream was opened for it: the server's limit (MAX_CONCURRENT_STREAMS) may be reached"
					if strings.HasSuffix(err.Error(), limited) != (row.want == "stream") {
						t.Errorf("the error is %v", err)
					}
				})
			})
		}
	}
}

// The default timeout ends a call that found no free stream: the error says both.
func TestError_WaitedForByDefault(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		oneStream(t, &s)
		_, err := s.call(t.Context(), get)
		const both = "; no stream was opened for it: the server's limit (MAX_CONCURRENT_STREAMS) may be reached; the call had no deadline"
		if !strings.Contains(err.Error(), both) {
			t.Error(err)
		}
	}, interceptor.WithDefaultTimeout(time.Second))
}

// The error of an earlier attempt, which has found no connection, says nothing of the stream that a later one waited for.
func TestError_WaitedForAfterAnother(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		oneStream(t, &s)
		down := testserver.Start(t)
		conn := down.Dial(t)
		down.Down()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.retrier.Unary()(ctx, get, wrapperspb.String("order 7"), new(wrapperspb.StringValue), s.conn,
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
				if n, _ := interceptor.AttemptFromContext(ctx); n == 1 {
					cc = conn
				}
				return cc.Invoke(ctx, method, req, reply, append(opts, interceptor.Disable())...)
			})
		e, ok := errors.AsType[*interceptor.Error](err)
		if !ok || e.Attempts != 2 || e.Reason != policy.ReasonNotConnected || !strings.HasSuffix(err.Error(), "is down\"") {
			t.Errorf("%v: %+v", err, e)
		}
	})
}

// comesLate makes the server go away, and be back when gRPC has given up.
func comesLate(t *testing.T, s *scene) {
	t.Helper()
	var conn *grpc.ClientConn
	back := func() {
		s.Up()
		for conn.GetState() != connectivity.Ready {
			conn.WaitForStateChange(t.Context(), conn.GetState())
		}
	}
	conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			defer back()
			return invoke(ctx, method, req, reply, cc, opts...)
		}), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			defer back()
			return open(ctx, desc, cc, method, opts...)
		}))...)
	s.conn = conn
	s.leave()
}

// resolveNothing connects to a name that has no addresses yet.
func resolveNothing(t *testing.T, s *scene) {
	t.Helper()
	s.conn = testkit.Must(grpc.NewClient("later:///orders", append(s.retrier.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithResolvers(manual.NewBuilderWithScheme("later")))...))(t)
	t.Cleanup(func() { _ = s.conn.Close() })
}

// A call that ends otherwise, or whose context was over before, has waited for nothing, and its text is gRPC's.
func TestError_WaitedForNothing(t *testing.T) {
	for name, row := range map[string]struct {
		before func(t *testing.T, s *scene) context.Context
		want   string
	}{
		"the connection is closed": {func(t *testing.T, s *scene) context.Context {
			_ = s.conn.Close()
			return t.Context()
		}, "closed: grpc: the client connection is closing"},
		"the connection closes in a backoff": {func(t *testing.T, s *scene) context.Context {
			s.On(get, restarting.Pushback("700"))
			time.AfterFunc(500*ms, func() { _ = s.conn.Close() })
			return t.Context()
		}, "closed: restarting"},
		"the connection closes under an attempt": {func(t *testing.T, s *scene) context.Context {
			s.On(get, testserver.Hang())
			time.AfterFunc(500*ms, func() { _ = s.conn.Close() })
			return t.Context()
		}, "closed: grpc: the client connection is closing"},
		"cancelled before": {func(t *testing.T, _ *scene) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}, "cancelled: context canceled"},
		"expired before": {func(t *testing.T, _ *scene) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
			t.Cleanup(cancel)
			return ctx
		}, "deadline_exceeded: context deadline exceeded"},
		"another attempt has failed for good": {loserWaits, "non_retryable: scripted failure"},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				c := everywhere()
				if strings.HasPrefix(name, "another") {
					c = hedged()
				}
				play(t, c, func(t *testing.T, s scene) {
					s.connect()
					err := exchange(row.before(t, &s), s.conn, desc, get)
					e, ok := errors.AsType[*interceptor.Error](err)
					if !ok || e.WaitedFor != "" || string(e.Reason)+": "+status.Convert(err).Message() != row.want {
						t.Fatalf("%v: %+v; want %s, and nothing that it waited for", err, e, row.want)
					}
				})
			})
		}
	}
}

// loserWaits makes the second attempt fail for good. The first one's end is told after the call's context is over.
func loserWaits(t *testing.T, s *scene) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ends := func(of context.Context) {
		if n, _ := interceptor.AttemptFromContext(of); n == 1 {
			context.AfterFunc(of, cancel)
		}
	}
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ends(ctx)
			err := invoke(ctx, method, req, reply, cc, opts...)
			time.Sleep(ms)
			return err
		}), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			ends(ctx)
			return open(ctx, desc, cc, method, opts...)
		}))...)
	s.connect()
	knowLatency(s.retrier, s.conn)
	s.On(get, testserver.Hang(), testserver.Fail(codes.NotFound))
	return ctx
}

// oneStream makes the server allow one stream, which another call has.
func oneStream(t *testing.T, s *scene) {
	t.Helper()
	s.Server = testserver.Start(t, testserver.ServerOptions(grpc.MaxConcurrentStreams(1)))
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	s.On(create, testserver.Hang())
	s.connect()
	go func() { _, _ = s.call(t.Context(), create, interceptor.Disable()) }()
	synctest.Wait()
}

// failAll makes calls fail until retries wait for an answer.
func failAll(t *testing.T, s *scene) {
	t.Helper()
	s.On("*", down())
	for range 5 {
		_, _ = s.call(t.Context(), get, interceptor.MaxAttempts(1))
	}
}

// waitInside makes an inner interceptor wait.
func waitInside(t *testing.T, s *scene) {
	t.Helper()
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return wait(ctx)
		}), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, wait(ctx)
		}))...)
}
