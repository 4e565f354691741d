// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// lateToken are credentials whose token doesn't come before the attempt's context is over.
type lateToken struct{}

func (lateToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (lateToken) RequireTransportSecurity() bool { return false }

// waitsForToken are inner interceptors that wait for a token before they call gRPC, in their own words.
func waitsForToken(fails func(error) error) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker,
			_ ...grpc.CallOption,
		) error {
			<-ctx.Done()
			return fails(ctx.Err())
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer,
			_ ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			<-ctx.Done()
			return nil, fails(ctx.Err())
		}),
	}
}

// Attempts that hang before they have a stream, here for a token, were seen by no server: nothing is taken for them, and they teach
// nothing.
func TestForeign_TokenNeverComes(t *testing.T) {
	asks := []grpc.CallOption{grpc.PerRPCCredentials(lateToken{})}
	for what, row := range map[string]struct {
		dial []grpc.DialOption
		opts []grpc.CallOption
	}{
		"credentials":                           {nil, asks},
		"an interceptor, with the context's":    {waitsForToken(func(err error) error { return err }), nil},
		"an interceptor, with gRPC's status":    {waitsForToken(func(err error) error { return status.FromContextError(err).Err() }), nil},
		"an interceptor, with one of its own":   {waitsForToken(func(error) error { return status.Error(codes.Unauthenticated, "no token") }), nil},
		"an interceptor, as if it was a server": {waitsForToken(func(error) error { return status.Error(codes.Unavailable, "no token") }), nil},
	} {
		for name, c := range map[string]spec.Config{"hedges": hedged(), "beside": watchful(false), "in place": watchful(true)} {
			for kind, desc := range callKinds {
				t.Run(fmt.Sprintf("%s/%s/%s", what, name, kind), func(t *testing.T) {
					p := &purse{grants: 1000}
					paid(c)
					fresh(t, c, func(t *testing.T, s scene) {
						s.takes(t, nil, get, repeat(10*ms, 20)...)
						s.Reset()
						*p = purse{grants: 1000}
						conn := s.conn
						s.conn = s.Dial(t, append(s.retrier.DialOptions(), row.dial...)...)
						s.connect()
						for range 3 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							if err := exchange(ctx, s.conn, desc, get, row.opts...); err == nil {
								t.Error("a call succeeds without a token")
							}
							cancel()
						}
						synctest.Wait()
						if p.returned != len(p.asked) || p.failed+p.wasted+p.refunded+p.ok+p.bad > 0 || s.Count(get) != 0 {
							t.Errorf("%v, wasted %d; want all of it returned, and no more", p, p.wasted)
						}
						s.conn = conn
						if got := s.hangs(t); got != policy.ReasonHedge && got != policy.ReasonRetry {
							t.Errorf("after calls that no server has seen: %s; want another attempt", got)
						}
					}, interceptor.WithBudget("", forAll(p)))
				})
			}
		}
	}
}

// tokenLater are credentials whose token doesn't come in the second attempt.
type tokenLater struct{}

func (tokenLater) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if number, _ := interceptor.AttemptFromContext(ctx); number != 2 {
		return map[string]string{"authorization": "Bearer x"}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (tokenLater) RequireTransportSecurity() bool { return false }

// An attempt that waits for a token is cancelled for the next one. gRPC makes UNAUTHENTICATED or INTERNAL of what its credentials return
// then, which isn't the call's response.
func TestForeign_TokenOfAReplacedAttempt(t *testing.T) {
	for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "server stream": serverStream} {
		for whose, row := range map[string]struct {
			dial []grpc.DialOption
			opts []grpc.CallOption
		}{
			"of the connection": {[]grpc.DialOption{grpc.WithPerRPCCredentials(tokenLater{})}, nil},
			"of the call":       {nil, []grpc.CallOption{grpc.PerRPCCredentials(tokenLater{})}},
		} {
			t.Run(kind+"/"+whose, func(t *testing.T) {
				play(t, watchful(true), func(t *testing.T, s scene) {
					s.On(get, testserver.Hang().Times(1), text("quick"))
					conn := s.Dial(t, append(s.retrier.DialOptions(), row.dial...)...)
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					err := exchange(ctx, conn, desc, get, append(row.opts, interceptor.MaxAttempts(3))...)
					if err != nil || s.Count(get) != 2 {
						t.Errorf("%v (%s), %d requests; want the third attempt to succeed", err, reasonOf(err), s.Count(get))
					}
				})
			})
		}
	}
}
