// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// delivered is a service config whose entry has an additional key, in its retryPolicy or next to it.
func delivered(place, key string) string {
	return strings.Replace(retries("3", ""), place, key+", "+place, 1)
}

// The first call of a connection begins before its service config arrives. The config still applies to its first
// attempt.
func TestLatePolicy_CommitOnHeaders(t *testing.T) {
	for name, option := range map[string]interceptor.Option{"seen": interceptor.WithObserver(interceptor.Observer{}), "unseen": callsOnly} {
		t.Run(name, func(t *testing.T) {
			playLive(t, nil, func(t *testing.T, s scene) {
				s.On("*", down().Header(metadata.Pairs("a", "b")))
				l := dialLive(t, s, delivered(`"maxAttempts"`, `"commitOn": "HEADERS"`), s.retrier.Resolver)
				l.wants(t, "the first call", get, 1, policy.ReasonCommitted)
				l.wants(t, "the second", get, 1, policy.ReasonCommitted)
			}, option)
		})
	}
}

// Attempts that are sent after the service config has come carry the criticality that it says.
func TestLatePolicy_Criticality(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, delivered(`"retryPolicy"`, `"sendCriticality": true, "criticality": "CRITICAL"`), s.retrier.Resolver)
		for _, what := range []string{"the first call", "the second"} {
			l.wants(t, what, get, 3, policy.ReasonAttemptsExhausted)
			for _, a := range s.Attempts() {
				said := a.Metadata.Get(criticalityHeader)
				if late := what == "the first call" && a.Number == 1; (len(said) == 1 && said[0] == "CRITICAL") == late {
					t.Errorf("%s, attempt %d: %q", what, a.Number, said)
				}
			}
		}
	})
}

// A server that refuses the stream of the first call may have processed it. Until the service config arrives, it is
// unknown whether gRPC may send it again.
func TestLatePolicy_TransparentRetry(t *testing.T) {
	for name, row := range map[string]struct {
		config string
		opts   []grpc.CallOption
		ran    int
		reason policy.Reason
	}{
		"denied":                          {delivered(`"retryPolicy"`, `"idempotency": "NONE", "transparentRetry": "DENY"`), nil, 1, policy.ReasonNotIdempotent},
		"declared by the caller":          {delivered(`"retryPolicy"`, `"idempotency": "NONE", "transparentRetry": "DENY"`), []grpc.CallOption{interceptor.Idempotent()}, 2, ""},
		"allowed, and retried by stagger": {retries("3", ""), nil, 2, ""},
	} {
		for _, kind := range []string{"unary", "server", "client", "bidi"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					lis := bufconn.Listen(1 << 16)
					defer lis.Close()
					p := new(refusingProxy)
					go p.serve(lis)
					r := mustNew(t, nil, interceptor.WithServiceConfig(), half, callsOnly)
					conn := dialDelivered(t, r, row.config, func(ctx context.Context, _ string) (net.Conn, error) { return p.dial(ctx, lis) })
					err := callOf(t.Context(), conn, kind, create, row.opts...)
					if p.ran != row.ran || reasonOf(err) != row.reason {
						t.Errorf("%v (%s): the handler ran %d times; want %q, %d times", err, reasonOf(err), p.ran, row.reason, row.ran)
					}
					_ = conn.Close()
				})
			})
		}
	}
}

// dialDelivered connects through a resolver of r's that delivers a service config with the addresses.
func dialDelivered(t *testing.T, r *interceptor.Retrier, config string, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	m := manual.NewBuilderWithScheme("late")
	m.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		m.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "backend"}}, ServiceConfig: cc.ParseServiceConfig(config)})
	}
	conn, err := grpc.NewClient("late:///orders", append(r.DialOptions(), grpc.WithResolvers(r.Resolver(m)),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Admission that arrives late can't refuse the first call, but counts it from then on.
func TestLatePolicy_Admission(t *testing.T) {
	for name, option := range map[string]interceptor.Option{"seen": interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) {}}), "unseen": callsOnly} {
		t.Run(name, func(t *testing.T) {
			playLive(t, nil, func(t *testing.T, s scene) {
				s.On(get, down(), testserver.Hang())
				s.retrier = mustNew(t, nil, option, interceptor.WithServiceConfig(), half)
				l := dialLive(t, s, delivered(`"retryPolicy"`, `"admission": "REFUSE"`), s.retrier.Resolver)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					_, err := l.call(ctx, get)
					done <- err
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if got := running(t, s.retrier); got != 1 {
					t.Errorf("%d attempts run by the second; want 1", got)
				}
				cancel()
				if <-done; running(t, s.retrier) != 0 {
					t.Errorf("%d attempts run when the call is over", running(t, s.retrier))
				}
			})
		})
	}
}

// A timeout that arrives late ends the first stream as it ends the second.
func TestLatePolicy_StreamTimeout(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", testserver.Hang())
		l := dialLive(t, s, delivered(`"retryPolicy"`, `"timeout": "1s"`), s.retrier.Resolver)
		for _, what := range []string{"the first stream", "the second"} {
			start := time.Now()
			_, err := receive(l.open(t, t.Context(), serverStream))
			if took := time.Since(start); status.Code(err) != codes.DeadlineExceeded || took != time.Second {
				t.Errorf("%s: %v after %v; want DeadlineExceeded after 1s", what, err, took)
			}
		}
		synctest.Wait()
		for _, e := range append(l.attempts, l.calls...) {
			if e.Code != codes.DeadlineExceeded {
				t.Errorf("observers: %+v", e)
			}
		}
	})
}
