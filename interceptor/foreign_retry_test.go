// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// retries of go-grpc-middleware.
var (
	foreignUnary = retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithCodes(codes.Unavailable),
		retry.WithBackoff(func(context.Context, uint) time.Duration { return ms }))
	foreignStream = retry.StreamClientInterceptor(retry.WithMax(3), retry.WithCodes(codes.Unavailable),
		retry.WithBackoff(func(context.Context, uint) time.Duration { return ms }))
)

// warned checks that there was one warning, which begins with want; none if that is "".
func (s scene) warned(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(s.warnings, "; "); !strings.HasPrefix(got, want) || (got == "") != (want == "") || len(s.warnings) > 1 {
		t.Errorf("warnings %q; want one that begins with %q", got, want)
	}
}

func TestForeignRetries(t *testing.T) {
	const inside, outside = "inner interceptor: ", "outer retry: "
	for name, row := range map[string]struct {
		inner, outer bool
		script       []testserver.Step
		ok           bool
		requests     int
		want         string
	}{
		"inside":                              {true, false, []testserver.Step{down()}, false, 12, inside},
		"inside, which hides the failure":     {true, false, []testserver.Step{down(), text("2")}, true, 2, inside},
		"outside":                             {false, true, []testserver.Step{down()}, false, 12, outside},
		"nowhere":                             {false, false, []testserver.Step{down()}, false, 4, ""},
		"inside, and nothing fails":           {true, false, []testserver.Step{text("1")}, true, 1, ""},
		"outside, and nothing fails for good": {false, true, []testserver.Step{down(), text("2")}, true, 2, ""},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, config(plain()), func(t *testing.T, s scene) {
					var opts []grpc.DialOption
					foreign := []grpc.DialOption{grpc.WithChainUnaryInterceptor(foreignUnary), grpc.WithChainStreamInterceptor(foreignStream)}
					if row.outer {
						opts = append(opts, foreign...)
					}
					opts = append(opts, s.retrier.DialOptions()...)
					if row.inner {
						opts = append(opts, foreign...)
					}
					s.conn = s.Dial(t, opts...)
					for range 2 {
						s.Reset()
						s.On(get, row.script...)
						if err := exchange(t.Context(), s.conn, desc, get); (err == nil) != row.ok || s.Count(get) != row.requests {
							t.Errorf("%v after %d requests; want %d", err, s.Count(get), row.requests)
						}
					}
					s.warned(t, row.want)
				})
			})
		}
	}
	t.Run("a context that is over", func(t *testing.T) { // gRPC calls OnFinish twice
		play(t, config(plain()), func(t *testing.T, s scene) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.call(ctx, get); err == nil {
				t.Error("no error")
			}
			s.warned(t, "")
		})
	})
}

func TestForeignRetryOptions(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", text("1"))
		for range 2 {
			_, _ = s.call(t.Context(), get, interceptor.Disable(), retry.Disable())
			_, _ = s.call(t.Context(), get, interceptor.Idempotent(), grpc.EmptyCallOption{})
		}
		s.warned(t, "")
		for range 2 {
			_, _ = s.call(t.Context(), get, retry.Disable())
			_, _, _ = s.whole(t, serverStream, retry.WithMax(3), retry.WithCodes(codes.Internal))
		}
		s.warned(t, "call option: "+get+": ")
		_, _, _ = s.whole(t, serverStream, retry.Disable())
		_, _ = s.call(t.Context(), create, retry.WithMax(1))
		if len(s.warnings) != 2 || !strings.Contains(s.warnings[1], create) {
			t.Errorf("warnings %q; want one for each method", s.warnings)
		}
	})
}
