// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func down() testserver.Step { return testserver.Fail(codes.Unavailable) }

func TestUnary_TargetsCleared(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			go s.Down() // from now on attempts have no stream
			return down().Header(metadata.Pairs("from", "1"))
		}))
		header, trailer := metadata.Pairs("stale", "x"), metadata.Pairs("stale", "x")
		p := peer.Peer{Addr: &net.IPAddr{}}
		if _, err := s.call(t.Context(), get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p)); err == nil {
			t.Fatal("no error")
		}
		if header != nil || trailer != nil || p != (peer.Peer{}) {
			t.Errorf("header %v, trailer %v, peer %v; want nothing of an attempt without a stream", header["from"], trailer, p)
		}
	})
}

func TestUnary_ClosedInWait(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "the disk is full").Pushback("60000"))
		time.AfterFunc(7*time.Second, func() { _ = s.conn.Close() })
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonClosed || status.Convert(err).Message() != "the disk is full" {
			t.Errorf("%v, %s; want the server's error, closed", err, reasonOf(err))
		}
		if waited := time.Since(began); waited != 7*time.Second || s.Count(get) != 1 {
			t.Errorf("returned after %v and %d attempts; want 7s and 1", waited, s.Count(get))
		}
	})
}

func TestUnary_ClosedBefore(t *testing.T) {
	all := plain()
	all.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Canceled}
	play(t, config(all), func(t *testing.T, s scene) {
		_ = s.conn.Close()
		if _, err := s.call(t.Context(), get); status.Code(err) != codes.Canceled || len(s.attempts) != 1 {
			t.Errorf("%v after %d attempts; want CANCELED after 1", err, len(s.attempts))
		}
	})
}

func TestUnary_Cancelled(t *testing.T) {
	all := plain()
	all.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Canceled}
	play(t, config(all), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.call(ctx, get); status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
	})
}

const serviceConfig = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s",
	"maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

func TestDialOptions(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultServiceConfig(serviceConfig))...)
		s.On(get, down())
		_, _ = s.call(t.Context(), get)
		if got := s.Count(get); got != 4 || len(s.warnings) > 0 {
			t.Errorf("the server saw %d attempts; want 4. Warnings: %v", got, s.warnings)
		}
	})
}

// When gRPC retries too, an attempt of ours without a stream may have had one before.
func TestUnary_UnsafeBesideGRPC(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithDefaultServiceConfig(serviceConfig))
		s.On(create, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			go s.Down()
			return down()
		}))
		if _, err := s.call(t.Context(), create); reasonOf(err) != policy.ReasonNotIdempotent || s.Count(create) != 1 {
			t.Errorf("%s after %d attempts; want not_idempotent after 1", reasonOf(err), s.Count(create))
		}
	})
}

func TestUnary_TwoRetriers(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		inner := s.retrier.DialOptions()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), inner...)...)
		s.On(get, down())
		for range 2 {
			_, _ = s.call(t.Context(), get)
		}
		if got := s.Count(get); got != 8 || len(s.warnings) != 1 {
			t.Errorf("the server saw %d attempts of two calls, and %d warnings; want 8 and 1", got, len(s.warnings))
		}
	})
}

func TestUnary_PolicyTimeout(t *testing.T) {
	c := config(plain())
	c.Methods[0].Timeout = 350 * ms
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down())
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonDeadlineTooClose || time.Since(began) != 300*ms {
			t.Errorf("%s after %v; want deadline_too_close after 300ms", reasonOf(err), time.Since(began))
		}
		if got := s.Attempts()[0].Timeout; got != 350*ms {
			t.Errorf("the server was told of %v; want the policy's 350ms", got)
		}
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		began = time.Now()
		if _, err := s.call(ctx, get); status.Code(err) != codes.DeadlineExceeded || time.Since(began) != 50*ms {
			t.Errorf("%v after %v; want the caller's earlier deadline", err, time.Since(began))
		}
	})
}

// quietly runs a test with a client that follows c, without observers: its calls that succeed at once take the
// fast path of the interceptor.
func quietly(t *testing.T, c spec.Config, test func(t *testing.T, s scene, p *purse)) {
	t.Helper()
	t.Parallel()
	paid(c)
	synctest.Test(t, func(t *testing.T) {
		p := &purse{grants: 9}
		s := scene{Server: testserver.Start(t), journal: new(journal), retrier: mustNew(t, mustSet(t, c), quiet, interceptor.WithBudget("", forAll(p)))}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		knowLatency(s.retrier, s.conn)
		test(t, s, p)
	})
}

func TestUnarySuccess_Budget(t *testing.T) {
	quietly(t, config(plain()), func(t *testing.T, s scene, p *purse) {
		s.On(get, text(""), down(), text(""), down())
		for range 3 {
			_, _ = s.call(t.Context(), get)
		}
		if got := p.String(); got != "asked [failure failure failure failure], failed 5, returned 0, refunded 1, ok 2, bad 1" {
			t.Error(got)
		}
	})
}

func TestUnarySuccess_Options(t *testing.T) {
	for name, c := range successPolicies() {
		t.Run(name, func(t *testing.T) {
			quietly(t, c, func(t *testing.T, s scene, _ *purse) {
				s.On(get, text("").Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")))
				var header, trailer metadata.MD
				var p peer.Peer
				finished := 0
				_, err := s.call(t.Context(), get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p), grpc.OnFinish(func(error) { finished++ }))
				if err != nil || header["from"] == nil || trailer["end"] == nil || p.Addr == nil || finished != 1 {
					t.Errorf("%v, header %v, trailer %v, peer %v, OnFinish %d times", err, header["from"], trailer["end"], p.Addr, finished)
				}
				if got := s.Attempts()[0].Metadata["grpc-previous-rpc-attempts"]; len(got) > 0 {
					t.Errorf("the server was told of %v attempts before", got)
				}
			})
		})
	}
}

func TestUnarySuccess_CallObserverAllocates(t *testing.T) {
	var events []interceptor.CallEnd
	observer := interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.CallEnd) { events = append(events[:0], e) }}
	unary := mustNew(t, fiftyMethods(t), interceptor.WithObserver(observer)).Unary()
	ctx, opts := t.Context(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	call()
	if n := testing.AllocsPerRun(1000, call); n > successAllocates {
		t.Errorf("a call that succeeds at once allocates %v times; want %d", n, successAllocates)
	}
	if e := events[0]; e.Attempts != 1 || e.Reason != policy.ReasonSucceeded {
		t.Errorf("%+v", e)
	}
}

func TestUnarySuccess_SecondTargetAllocates(t *testing.T) {
	retrier := mustNew(t, fiftyMethods(t))
	unary := retrier.Unary()
	for _, target := range []string{"passthrough:///one", "passthrough:///two"} {
		conn := testkit.Must(grpc.NewClient(target, grpc.WithTransportCredentials(noCredentials)))(t)
		defer conn.Close()
		call := func() { _ = unary(t.Context(), "/acme.orders.v1.OrderService/Method25", nil, nil, conn, finished) }
		call()
		if n := testing.AllocsPerRun(1000, call); n > successAllocates {
			t.Errorf("%s: a call allocates %v times; want %d", target, n, successAllocates)
		}
	}
}

func TestUnary_ContextsEnd(t *testing.T) {
	t.Parallel()
	for _, retry := range []spec.Retry{hasty(), plain()} {
		c, over := config(retry), context.Canceled
		c.Methods[0].Timeout = time.Hour
		ends := interceptor.Observer{CallEnd: func(ctx context.Context, _ interceptor.CallEnd) { over = ctx.Err() }} // it may make calls
		unary := mustNew(t, mustSet(t, c), quiet, interceptor.WithObserver(ends)).Unary()
		synctest.Test(t, func(t *testing.T) {
			var seen []context.Context
			_ = unary(t.Context(), get, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				seen = append(seen, ctx)
				return []error{status.Error(codes.Unavailable, ""), status.Error(codes.Unavailable, ""), nil}[len(seen)-1]
			})
			for i, ctx := range seen {
				if ctx.Err() == nil || over != nil {
					t.Errorf("the context of attempt %d lives on; at the end of the call: %v", i+1, over)
				}
			}
		})
	}
}

// An attempt that returns before gRPC has ended it is classified by its status, as any other.
func TestUnary_ReturnsEarly(t *testing.T) {
	listed := status.Error(codes.Unavailable, "gone ahead")
	for name, row := range map[string]struct {
		early    error
		method   string
		attempts int
		reason   policy.Reason
	}{
		"a listed code":            {listed, get, 4, policy.ReasonAttemptsExhausted},
		"another code":             {status.Error(codes.NotFound, ""), get, 1, policy.ReasonNonRetryable},
		"no status":                {errors.New("no token"), get, 1, policy.ReasonNonRetryable},
		"of an undeclared method":  {listed, create, 1, policy.ReasonNotIdempotent},
		"with an unchanged reply":  {fmt.Errorf("inner: %w", listed), get, 4, policy.ReasonAttemptsExhausted},
		"of one, without a status": {errors.New("no token"), create, 1, policy.ReasonNonRetryable},
	} {
		for may, c := range map[string]spec.Config{"one at a time": config(plain()), "may be slow": config(besides())} {
			t.Run(name+"/"+may, func(t *testing.T) {
				p := &purse{grants: 10}
				paid(c)
				play(t, c, func(t *testing.T, s scene) {
					n := 0
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
						func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
							n++
							return row.early
						}))...)
					for range 2 { // nothing of the first call changes the second
						n = 0
						err := conn.Invoke(t.Context(), row.method, wrapperspb.String("x"), new(wrapperspb.StringValue))
						if !errors.Is(err, row.early) || n != row.attempts || reasonOf(err) != row.reason {
							t.Errorf("%v (%s) after %d attempts; want %s after %d", err, reasonOf(err), n, row.reason, row.attempts)
						}
					}
					if spent := len(p.asked) - p.returned; spent != 2*(row.attempts-1) || p.failed+p.refunded+p.ok > 0 {
						t.Errorf("%v; want each retry paid for, and no more", p)
					}
				}, interceptor.WithBudget("", forAll(p)))
			})
		}
	}
}

// An inner interceptor may ask another server, over a connection of its own: nothing is proven of such an attempt. One that is not declared
// runs once, and the retries of others are paid for.
func TestUnary_Diverts(t *testing.T) {
	for name, row := range map[string]struct {
		method   string
		attempts int
		reason   policy.Reason
	}{
		"declared":   {get, 3, policy.ReasonBudgetExhausted},
		"undeclared": {create, 1, policy.ReasonNotIdempotent},
	} {
		t.Run(name, func(t *testing.T) {
			p := &purse{grants: 2}
			c := config(plain())
			paid(c)
			play(t, c, func(t *testing.T, s scene) {
				other := testserver.Start(t)
				other.On("*", down())
				to := other.Dial(t)
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
					func(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
						return to.Invoke(ctx, method, req, reply)
					}))...)
				err := conn.Invoke(t.Context(), row.method, wrapperspb.String("x"), new(wrapperspb.StringValue))
				if other.Count(row.method) != row.attempts || reasonOf(err) != row.reason {
					t.Errorf("%v (%s) after %d attempts; want %s after %d", err, reasonOf(err), other.Count(row.method), row.reason, row.attempts)
				}
			}, interceptor.WithBudget("", forAll(p)))
		})
	}
}
