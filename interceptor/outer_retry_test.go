// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// tries is a loop around a call, as programs have it.
func tries(n int, pause time.Duration, call func() error) {
	for range n {
		if call() == nil {
			return
		}
		time.Sleep(pause)
	}
}

// with makes a call with a request of its own.
func (s scene) with(ctx context.Context, request any, opts ...grpc.CallOption) error {
	return s.conn.Invoke(ctx, get, request, new(emptypb.Empty), opts...)
}

// limited is a context with a deadline.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// likeEtcds is a retry interceptor as in etcd's client: 25 ms after each failure it calls again, with what it was given.
func likeEtcds(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) (err error) {
	for range 100 {
		if err = invoke(ctx, method, req, reply, cc, opts...); err == nil || status.Code(err) != codes.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * ms):
		}
	}
	return err
}

func fresh() *wrapperspb.StringValue { return wrapperspb.String("order 7") }

func TestOuterRetry(t *testing.T) {
	request := func(s scene, ctx func() context.Context, opts ...grpc.CallOption) func() error {
		m := fresh()
		return func() error { return s.with(ctx(), m, opts...) }
	}
	same := func(ctx context.Context) func() context.Context { return func() context.Context { return ctx } }
	each := func(t *testing.T, parent context.Context) func() context.Context {
		t.Helper()
		return func() context.Context {
			ctx, cancel := context.WithTimeout(parent, 20*time.Second)
			t.Cleanup(cancel)
			return ctx
		}
	}
	incoming := func(t *testing.T, s scene, handle func(context.Context)) {
		t.Helper()
		var trailer metadata.MD
		ctx := grpc.NewContextWithServerTransportStream(t.Context(), trailers{&trailer})
		_, _ = s.retrier.UnaryServer()(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			handle(ctx)
			return nil, nil //nolint:nilnil // nobody looks at it
		})
	}
	open := func(ctx context.Context, t *testing.T, s scene, m any) error {
		t.Helper()
		stream, err := s.conn.NewStream(ctx, serverStream, get)
		if err == nil {
			_ = stream.SendMsg(m)
			_ = stream.CloseSend()
			_, err = receive(stream)
		}
		return err
	}
	for name, row := range map[string]struct {
		play func(*testing.T, scene)
		want bool
	}{
		"a loop with a deadline":  {func(t *testing.T, s scene) { tries(3, ms, request(s, same(limited(t, time.Minute)))) }, true},
		"that pauses for seconds": {func(t *testing.T, s scene) { tries(3, 4*time.Second, request(s, same(limited(t, time.Minute)))) }, true},
		"that pauses for more":    {func(t *testing.T, s scene) { tries(3, 1300*ms, request(s, same(limited(t, time.Minute)))) }, true},
		"a loop without":          {func(t *testing.T, s scene) { tries(3, 900*ms, request(s, same(t.Context()))) }, true},
		"without any context":     {func(_ *testing.T, s scene) { tries(3, ms, request(s, context.Background)) }, true},
		"derived contexts":        {func(t *testing.T, s scene) { tries(3, ms, request(s, each(t, limited(t, 10*time.Second)))) }, true},
		"a try's timeout, in one incoming call": {func(t *testing.T, s scene) {
			incoming(t, s, func(ctx context.Context) { tries(3, ms, request(s, each(t, ctx))) })
		}, true},
		"an interceptor like etcd's": {func(t *testing.T, s scene) {
			s.conn = s.Dial(t, append([]grpc.DialOption{grpc.WithUnaryInterceptor(likeEtcds)}, s.retrier.DialOptions()...)...)
			_, _ = s.call(limited(t, 30*time.Second), get)
		}, true},
		"streams": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Minute), fresh()
			tries(3, ms, func() error { return open(ctx, t, s, m) })
		}, true},
		"beside other requests": {func(t *testing.T, s scene) {
			again := request(s, same(limited(t, time.Minute)))
			tries(3, ms, func() error { defer func() { _ = s.with(t.Context(), fresh()) }(); return again() })
		}, true},
		"beside another that is watched, later": {func(t *testing.T, s scene) {
			_ = s.with(t.Context(), fresh())
			tries(8, time.Second, request(s, same(limited(t, time.Minute))))
		}, true},

		"two tries": {func(t *testing.T, s scene) { tries(2, ms, request(s, same(limited(t, time.Minute)))) }, false},
		"new requests": {func(t *testing.T, s scene) {
			tries(9, ms, func() error { return s.with(limited(t, time.Minute), fresh()) })
		}, false},
		"one message for other requests": {func(t *testing.T, s scene) {
			ctx, m, n := limited(t, time.Minute), fresh(), 0
			tries(9, ms, func() error { n++; m.Value = fmt.Sprint("order ", n); return s.with(ctx, m) })
		}, false},
		"independent calls, each in its time": {func(t *testing.T, s scene) { tries(9, ms, request(s, each(t, t.Context()))) }, false},
		"a poll each second":                  {func(t *testing.T, s scene) { tries(9, 1001*ms, request(s, same(t.Context()))) }, false},
		"an outer pause that is long":         {func(t *testing.T, s scene) { tries(9, 5001*ms, request(s, same(limited(t, time.Hour)))) }, false},
		"incoming calls that share a request": {func(t *testing.T, s scene) {
			again := request(s, same(t.Context()))
			m := fresh()
			for range 9 {
				incoming(t, s, func(ctx context.Context) { _ = s.with(ctx, m) })
			}
			_ = again()
		}, false},
		"a fan-out with new requests": {func(t *testing.T, s scene) {
			ctx := limited(t, time.Minute)
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { _ = s.with(ctx, fresh()) })
			}
			all.Wait()
		}, false},
		"a fan-out with one request": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Minute), fresh()
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() { time.Sleep(time.Duration(i) * ms); _ = s.with(ctx, m) })
			}
			all.Wait()
		}, false},
		"two loops with one request, since nobody knows whose call it is": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Minute), fresh()
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { tries(5, ms, func() error { return s.with(ctx, m) }) })
			}
			all.Wait()
		}, false},
		"a success between": {func(t *testing.T, s scene) {
			again := request(s, same(limited(t, time.Hour)))
			for range 5 {
				tries(2, ms, again)
				s.On(get, text("ok").Times(1), down().Delay(ms))
				if err := again(); err != nil {
					t.Error(err)
				}
			}
		}, false},
		"a success after a retry between": {func(t *testing.T, s scene) {
			again := request(s, same(limited(t, time.Hour)))
			for range 5 {
				tries(2, ms, again)
				s.On(get, down().Times(1), text("ok").Times(1), down().Delay(ms))
				if err := again(); err != nil {
					t.Error(err)
				}
			}
		}, false},
		"another target each time": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Minute), fresh()
			for i := range 9 {
				conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///replica-%d", i), append(s.DialOptions(), s.retrier.DialOptions()...)...)
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Invoke(ctx, get, m, new(emptypb.Empty))
				_ = conn.Close()
			}
		}, false},
		"contexts that are not the same": {func(t *testing.T, s scene) {
			tries(9, ms, request(s, func() context.Context {
				ctx, cancel := context.WithCancel(t.Context())
				t.Cleanup(cancel)
				return ctx
			}))
		}, false},
		"a deadline, and then none": {func(t *testing.T, s scene) {
			ctx := limited(t, time.Minute)
			tries(3, ms, request(s, func() (now context.Context) {
				now, ctx = ctx, t.Context()
				return now
			}))
		}, false},
		"observed, and the server forbids retries": {func(t *testing.T, s scene) {
			mustSetMode(t, s.retrier, policy.ModeObserve)
			s.On(get, down().Pushback("-1"))
			tries(9, ms, request(s, same(limited(t, time.Minute))))
		}, false},
		"another code": {func(t *testing.T, s scene) {
			s.On(get, testserver.Fail(codes.NotFound))
			tries(9, ms, request(s, same(limited(t, time.Minute))))
		}, false},
		"cancelled between": {func(t *testing.T, s scene) {
			m := fresh()
			for range 9 {
				ctx, cancel := context.WithCancel(limited(t, time.Minute))
				time.AfterFunc(150*ms, cancel)
				_ = s.with(ctx, m)
			}
		}, false},
		"of one attempt": {func(t *testing.T, s scene) {
			tries(9, ms, request(s, same(limited(t, time.Minute)), interceptor.MaxAttempts(1)))
		}, false},
		"switched off": {func(t *testing.T, s scene) {
			mustSetMode(t, s.retrier, policy.ModeObserve)
			tries(9, ms, request(s, same(limited(t, time.Minute))))
		}, false},
		"a loop that waits for RetryAfter, and a little longer": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Hour), fresh()
			for range 9 {
				time.Sleep(retryAfterOf(s.with(ctx, m)) * 6 / 5)
			}
		}, false},
		"a loop that waits for RetryAfter": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Hour), fresh()
			for range 9 {
				time.Sleep(retryAfterOf(s.with(ctx, m)))
			}
		}, false},
		"streams that were answered": {func(t *testing.T, s scene) {
			s.On(get, moves.Play(moves.Receive(1), say("a")).Then(down()))
			ctx, m := limited(t, time.Minute), fresh()
			tries(9, ms, func() error { return open(ctx, t, s, m) })
		}, false},
		"a stream between that is answered": {func(t *testing.T, s scene) {
			ctx, m := limited(t, time.Minute), fresh()
			tries(2, ms, func() error { return open(ctx, t, s, m) })
			s.On(get, moves.Play(moves.Receive(1), say("a")).Then(down()).Times(1), down())
			tries(3, ms, func() error { return open(ctx, t, s, m) })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			quick := plain()
			quick.Backoff.Max = 10 * time.Second // a loop that waits for 5 s does as RetryAfter says
			switch name {
			case "an outer pause that is long":
				quick.Backoff.Max = time.Minute
			case "that pauses for more", "a loop that waits for RetryAfter", "a loop that waits for RetryAfter, and a little longer":
				quick.Backoff.Max = 2 * time.Second // RetryAfter is 1 s
			}
			play(t, config(quick), func(t *testing.T, s scene) {
				s.On("*", down().Delay(ms))
				row.play(t, s)
				want := ""
				if row.want {
					want = "outer retry: " + get + ": A loop, an interceptor or the client library makes calls again outside of the Retrier: " +
						"3 in a row with one request have failed, with 12 attempts. So attempts multiply"
				}
				s.warned(t, want)
				if got := s.outer(); (got > 0) != row.want {
					t.Errorf("%d events tell of an outer retry", got)
				}
			})
		})
	}
}

// outer is how many calls were outer retries.
func (s scene) outer() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.calls {
		if e.OuterRetry {
			n++
		}
	}
	return n
}

// It is warned of once a method, and counted for each call.
func TestOuterRetry_Once(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", down())
		for range 3 {
			m := fresh()
			tries(4, ms, func() error { return s.with(limited(t, time.Minute), m) })
			ctx := limited(t, time.Minute)
			tries(4, ms, func() error { return s.with(ctx, m) })
			tries(4, ms, func() error { return s.conn.Invoke(ctx, create, m, new(emptypb.Empty)) })
			time.Sleep(6 * time.Second)
		}
		if n := s.outer(); n != 12 || len(s.warnings) != 2 || !strings.Contains(strings.Join(s.warnings, ""), "3 in a row with one request have failed, with 3 attempts") {
			t.Errorf("%d calls, warnings %q; want 12, and 2 warnings", n, s.warnings)
		}
	})
}

// A request is kept for five seconds after its call has failed, and not after a success. At most a hundred are kept.
func TestOuterRetry_Memory(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		last  func(scene, context.Context, any)
		kept  bool
	}{
		"after 4.9 s":     {4900 * ms, func(scene, context.Context, any) {}, true},
		"after 5.1 s":     {5100 * ms, func(scene, context.Context, any) {}, false},
		"after a success": {0, func(s scene, ctx context.Context, m any) { s.On(get, text("")); _ = s.with(ctx, m) }, false},
		"after a panic": {5100 * ms, func(s scene, ctx context.Context, m any) {
			defer func() { _ = recover() }()
			_ = s.retrier.Unary()(ctx, get, m, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic("inside") })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down())
				kept := func() weak.Pointer[wrapperspb.StringValue] {
					m := fresh()
					ctx := limited(t, time.Hour)
					for range 2 {
						_ = s.with(ctx, m)
					}
					row.last(s, ctx, m)
					return weak.Make(m)
				}()
				time.Sleep(row.after)
				synctest.Wait()
				for range 3 {
					runtime.GC()
				}
				if got := kept.Value() != nil; got != row.kept {
					t.Errorf("kept: %t; want %t", got, row.kept)
				}
			})
		})
	}
	t.Run("a hundred methods", func(t *testing.T) {
		everything := config(plain())
		everything.Methods[1].Names, everything.Idempotency = []string{"/"}, policy.IdempotencyAssume
		play(t, everything, func(t *testing.T, s scene) {
			s.On("*", down())
			call := func(i int) func() error {
				m, ctx := fresh(), limited(t, time.Hour)
				return func() error { return s.conn.Invoke(ctx, fmt.Sprintf("/a.B/C%d", i), m, new(emptypb.Empty)) }
			}
			var calls []func() error
			for i := range 150 {
				calls = append(calls, call(i))
			}
			for range 3 {
				var all sync.WaitGroup
				for _, c := range calls {
					all.Go(func() { _ = c() })
				}
				all.Wait()
			}
			if len(s.warnings) != 100 || s.retrier.Watched() != 100 {
				t.Errorf("%d warnings, %d requests are kept; want 100", len(s.warnings), s.retrier.Watched())
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if n := s.retrier.Watched(); n != 0 {
				t.Errorf("%d requests are kept; want none", n)
			}
		})
	})
}

// An observer that panics at the warning ends that call alone.
func TestOuterRetry_Panic(t *testing.T) {
	panicking := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if d.Field == "outer retry" {
			panic("at the warning")
		}
	}})
	for name, call := range map[string]func(scene, *testing.T, context.Context, any) error{
		"unary": func(s scene, _ *testing.T, ctx context.Context, m any) error { return s.with(ctx, m) },
		"stream": func(s scene, t *testing.T, ctx context.Context, m any) error {
			t.Helper()
			stream := s.open(t, ctx, serverStream)
			_ = stream.SendMsg(m)
			_ = stream.CloseSend()
			_, err := receive(stream)
			if status.Code(err) == codes.Unavailable {
				_, err = receive(stream) // the panic comes up in the next call
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, waiting(config(plain()), 2), func(t *testing.T, s scene) {
				s.On(get, down())
				ctx, m, panics := limited(t, time.Minute), fresh(), 0
				for range 6 {
					func() {
						defer func() {
							if recover() != nil {
								panics++
							}
						}()
						_ = call(s, t, ctx, m)
					}()
				}
				s.On(get, text("ok"))
				if err := call(s, t, ctx, m); err != nil && err != io.EOF || panics != 1 || s.retrier.State().Waiting != 0 || s.retrier.Watched() != 0 {
					t.Errorf("%v after %d panics; %d calls wait, %d requests are watched", err, panics, s.retrier.State().Waiting, s.retrier.Watched())
				}
			}, panicking)
		})
	}
}

// A request that is not told from others by its address is never watched.
func TestOuterRetry_Requests(t *testing.T) {
	type empty struct{}
	for _, row := range []struct {
		request any
		watched int
	}{
		{fresh(), 1}, {nil, 0}, {(*emptypb.Empty)(nil), 0}, {[]byte("a"), 0}, {"a", 0}, {map[string]int{}, 0}, {new(empty), 0}, {struct{ f func() }{}, 0},
	} {
		t.Run(fmt.Sprintf("%T", row.request), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				fails := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					return status.Error(codes.Unavailable, "down")
				}
				for range 2 {
					_ = s.retrier.Unary()(t.Context(), get, row.request, nil, nil, fails)
				}
				if s.retrier.Watched() != row.watched {
					t.Errorf("%d are watched; want %d", s.retrier.Watched(), row.watched)
				}
			})
		})
	}
}

// Calls with one request race with each other, with reloads and with the clock; nothing is left behind.
func TestOuterRetry_Race(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", down().Times(5), text("ok").Times(1))
		m, set := fresh(), mustSet(t, config(plain()))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i+j)%7)*200*ms)
					_ = s.with(ctx, m)
					cancel()
					if j%10 == 0 {
						_ = s.retrier.Reload(set)
					}
				}
			})
		}
		all.Wait()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := s.retrier.Watched(); n != 0 {
			t.Errorf("%d requests are kept; want none", n)
		}
	})
}

// A call that succeeds pays no allocation while a request of its method is watched, or is its own.
func TestOuterRetry_SuccessAllocatesNothing(t *testing.T) {
	r := mustNew(t, fiftyMethods(t))
	const method = "/acme.orders.v1.OrderService/Method25"
	m, ctx, opts := fresh(), context.Background(), []grpc.CallOption{grpc.StaticMethod()}
	fails := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.Unavailable, "down")
	}
	_ = r.Unary()(ctx, method, m, nil, nil, fails, opts...)
	if r.Watched() != 1 {
		t.Fatalf("%d requests are watched; want 1", r.Watched())
	}
	unary, other := r.Unary(), fresh()
	for name, request := range map[string]any{"another request": other, "no request": nil} {
		if n := testing.AllocsPerRun(1000, func() { _ = unary(ctx, method, request, nil, nil, answered, opts...) }); n > slack {
			t.Errorf("%s: %v allocations; want 0", name, n)
		}
	}
	_ = unary(ctx, method, m, nil, nil, answered, opts...)
	if r.Watched() != 0 {
		t.Errorf("%d requests are watched after a success; want none", r.Watched())
	}
}
