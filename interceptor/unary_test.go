// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
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
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/must"
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
				incoming := metadata.Pairs("grpc-previous-rpc-attempts", "3")
				ctx := metadata.NewOutgoingContext(metadata.NewIncomingContext(t.Context(), incoming), incoming.Copy())
				_, err := s.call(ctx, get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p), grpc.OnFinish(func(error) { finished++ }))
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
	var events []interceptor.Event
	observer := interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.Event) { events = append(events[:0], e) }}
	unary := mustNew(t, fiftyMethods(t), interceptor.WithObserver(observer)).Unary()
	ctx, opts := t.Context(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	call()
	if n := testing.AllocsPerRun(1000, call); n > successAllocates {
		t.Errorf("a call that succeeds at once allocates %v times; want %d", n, successAllocates)
	}
	if e := events[0]; e.Attempt != 1 || e.Reason != policy.ReasonSucceeded {
		t.Errorf("%+v", e)
	}
}

func TestUnarySuccess_SecondTargetAllocates(t *testing.T) {
	retrier := mustNew(t, fiftyMethods(t))
	unary := retrier.Unary()
	for _, target := range []string{"passthrough:///one", "passthrough:///two"} {
		conn := must.Get(grpc.NewClient(target, grpc.WithTransportCredentials(noCredentials)))(t)
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
		ends := interceptor.Observer{CallEnd: func(ctx context.Context, _ interceptor.Event) { over = ctx.Err() }} // it may make calls
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

// An inner interceptor that returns before gRPC has ended its attempt leaves one behind that still writes into the
// reply. The first call to which that happens has no other attempt; from then on, attempts have replies of their own.
func TestUnary_LeftRunning(t *testing.T) {
	for name, option := range map[string]interceptor.Option{
		"seen": interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) {}}), "unseen": quiet,
		"a breaker is asked": interceptor.WithBreaker(func(string, string) interceptor.Gate { return &fuse{limit: 9} }),
		"may be slow":        quiet,
	} {
		retry := plain()
		if name == "may be slow" {
			retry.PerAttemptTimeout = time.Minute
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scene{Server: testserver.Start(t), retrier: mustNew(t, mustSet(t, config(retry)), option)}
				s.On("*", text("late").Delay(time.Second))
				n := 0
				inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if n++; n%2 == 0 {
						return invoke(ctx, method, req, reply, cc, opts...)
					}
					go func() { _ = invoke(ctx, method, req, reply, cc, opts...) }()
					time.Sleep(100 * ms)
					return status.Error(codes.Unavailable, "gone ahead")
				}
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
				err := s.conn.Invoke(t.Context(), get, wrapperspb.String("order 7"), new(wrapperspb.StringValue)) // not read: the late reply is written there
				if n != 1 || reasonOf(err) != policy.ReasonNonRetryable {
					t.Errorf("%v after %d attempts; want one, since it may still write into the reply", err, n)
				}
				time.Sleep(2 * time.Second)
				n = 0
				reply := wrapperspb.String("caller's")
				s.On(get, text("late").Delay(3*time.Second), text("in time").Delay(10*ms))
				if err := s.conn.Invoke(t.Context(), get, wrapperspb.String("order 7"), reply); err != nil || n != 2 || reply.GetValue() != "in time" {
					t.Errorf("%q, %v after %d attempts; want the answer of the second", reply.GetValue(), err, n)
				}
				time.Sleep(5 * time.Second)
				if reply.GetValue() != "in time" {
					t.Errorf("then the reply is %q", reply.GetValue())
				}
				n = 1
				s.On(get, text("at once"))
				if err := s.conn.Invoke(t.Context(), get, wrapperspb.String("order 7"), reply); err != nil || reply.GetValue() != "at once" {
					t.Errorf("a call that is answered at once: %q, %v", reply.GetValue(), err)
				}
			})
		})
	}
}
