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
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
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
					const limited = "; no stream was free on the connection (MAX_CONCURRENT_STREAMS)"
					if strings.HasSuffix(err.Error(), limited) != (row.want == "stream") {
						t.Errorf("the error is %v", err)
					}
				})
			})
		}
	}
}

// oneStream makes the server allow one stream, which another call has.
func oneStream(t *testing.T, s *scene) {
	t.Helper()
	s.Server = testserver.Start(t, testserver.ServerOptions(grpc.MaxConcurrentStreams(1)))
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	s.On(create, testserver.Hang())
	s.connect()
	go func() { _, _ = s.call(t.Context(), create) }()
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
