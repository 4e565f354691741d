// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// answeringIn answers each request after a time that is drawn.
func answeringIn(times *testkit.Times) testserver.Step {
	return testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return text("").Delay(times.Draw()) })
}

// cacheKey marks a call that the cache of a client answers.
type cacheKey struct{}

// caching dials with a cache inside of the Retrier, which answers calls that are marked.
func (s scene) caching(t *testing.T) scene {
	t.Helper()
	s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if ctx.Value(cacheKey{}) != nil {
			return nil
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}))...)
	return s
}

// cached marks calls that the cache answers.
func cached(ctx context.Context) context.Context { return context.WithValue(ctx, cacheKey{}, true) }

// A cache that answers nearly all calls at once teaches no quantile: else all requests that reach the server would be hedged.
func TestForeign_CacheAndQuantile(t *testing.T) {
	testkit.Long(t)
	fresh(t, byQuantile(), func(t *testing.T, s scene) {
		s = s.caching(t)
		times := testkit.NewTimes(50*ms, 0.4, 2)
		s.On(get, answeringIn(times))
		asked := 0
		for range 20_000 {
			ctx := t.Context()
			if times.Chance() < 0.97 {
				ctx = cached(ctx)
			} else {
				asked++
			}
			testkit.Must(s.call(ctx, get))(t)
			time.Sleep(10 * ms)
		}
		synctest.Wait()
		if got := s.Count(get); asked < 500 || float64(got) > 1.12*float64(asked) {
			t.Errorf("%d requests for %d calls that the cache did not answer; want about 5 %% more", got, asked)
		}
	})
}

// What no server has seen.
var unseen = map[string]func(t *testing.T, s scene) error{
	"an answer of a cache": func(t *testing.T, s scene) error {
		t.Helper()
		_, err := s.caching(t).call(cached(t.Context()), get)
		return err
	},
	"an answer of a cache, with a trailer": func(t *testing.T, s scene) error {
		t.Helper()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				for _, o := range opts {
					if o, ok := o.(grpc.TrailerCallOption); ok {
						*o.TrailerAddr = metadata.Pairs("cached", "yes")
					}
				}
				return nil
			}))...)
		_, err := s.call(t.Context(), get)
		return err
	},
	"an answer of a cache, after gRPC has reached nobody": func(t *testing.T, s scene) error {
		t.Helper()
		s.conn = over(t, s.retrier, nil, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody listens")
		}), grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				_ = invoke(ctx, method, req, reply, cc, opts...)
				return nil
			}))
		_, err := s.call(t.Context(), get)
		return err
	},
	"a stream of an inner interceptor": func(t *testing.T, s scene) error {
		t.Helper()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &storedStream{ctx: ctx}, nil
			}))...)
		return exchange(t.Context(), s.conn, clientStream, get)
	},
	"an error of an inner interceptor": func(t *testing.T, s scene) error {
		t.Helper()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				return status.Error(codes.NotFound, "not in the local store")
			}))...)
		_, err := s.call(t.Context(), get)
		return err
	},
	"a failure of an inner interceptor": func(t *testing.T, s scene) error {
		t.Helper()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				return status.Error(codes.Unavailable, "its own circuit is open")
			}))...)
		_, err := s.call(t.Context(), get, interceptor.MaxAttempts(1))
		return err
	},
	"credentials that fail": func(t *testing.T, s scene) error {
		t.Helper()
		_, err := s.call(t.Context(), get, grpc.PerRPCCredentials(noToken{}))
		return err
	},
	"a context that is over": func(t *testing.T, s scene) error {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.call(ctx, get)
		return err
	},
	"a deadline that is over": func(t *testing.T, s scene) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		_, err := s.call(ctx, get)
		return err
	},
	"no connection until the deadline": func(t *testing.T, s scene) error {
		t.Helper()
		conn := over(t, s.retrier, nil, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.conn = conn
		_, err := s.call(ctx, get)
		return err
	},
	"no connection at all": func(t *testing.T, s scene) error {
		t.Helper()
		conn := over(t, s.retrier, nil, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody listens")
		}))
		s.conn = conn
		_, err := s.call(t.Context(), get, interceptor.MaxAttempts(1))
		return err
	},
}

// storedStream is a stream that an inner interceptor has made: it has one empty message.
type storedStream struct {
	grpc.ClientStream

	ctx  context.Context
	read bool
}

func (s *storedStream) Context() context.Context { return s.ctx }
func (*storedStream) SendMsg(any) error          { return nil }
func (*storedStream) CloseSend() error           { return nil }
func (s *storedStream) RecvMsg(any) error {
	if s.read {
		return io.EOF
	}
	s.read = true
	return nil
}

// noToken are credentials that have no token.
type noToken struct{}

func (noToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, status.Error(codes.Unauthenticated, "no token")
}

func (noToken) RequireTransportSecurity() bool { return false }

// A call that no server has seen spends nothing and earns nothing: its budget hears nothing of it.
func TestForeign_Budget(t *testing.T) {
	check := func(t *testing.T, s scene, p *purse, call func(t *testing.T, s scene) error) {
		t.Helper()
		err := call(t, s)
		if got := p.String(); got != "asked [], failed 0, returned 0, refunded 0, ok 0, bad 0" || s.Count("*") != 0 {
			t.Errorf("%v: %s; the server saw %d", err, got, s.Count("*"))
		}
	}
	for name, call := range unseen {
		t.Run(name, func(t *testing.T) {
			p := &purse{grants: 9}
			c := config(plain())
			paid(c)
			fresh(t, c, func(t *testing.T, s scene) { check(t, s, p, call) }, interceptor.WithBudget("", forAll(p)))
		})
		t.Run(name+", and nobody observes", func(t *testing.T) {
			quietly(t, config(plain()), func(t *testing.T, s scene, p *purse) { check(t, s, p, call) })
		})
	}
}

// Cached successes fill no bucket.
func TestForeign_CacheEarnsNothing(t *testing.T) {
	b := bucketOf(10)
	config, _ := b.Config.(budget.BucketConfig)
	config.PerSuccess = 1
	b.Config = config
	fresh(t, budgeted(b), func(t *testing.T, s scene) {
		s.exhaust(t)
		before := inUse(s.retrier)[0].Balance
		one := s.caching(t)
		for range 100 {
			testkit.Must(one.call(cached(t.Context()), get))(t)
		}
		if after := inUse(s.retrier)[0].Balance; after != before {
			t.Errorf("a balance of %v after cached answers; want %v, as before", after, before)
		}
	})
}

// What no server has seen is no answer: neither a fast one, which would hide a queue, nor one of the five that must be known.
func TestForeign_Evidence(t *testing.T) {
	for name, call := range unseen {
		t.Run(name, func(t *testing.T) {
			fresh(t, watchful(false), func(t *testing.T, s scene) {
				for range 5 {
					_ = call(t, s)
				}
				if got := s.hangs(t); got != policy.ReasonNotProvenFast {
					t.Errorf("after calls that no server has seen: %s; want not_proven_fast", got)
				}
				s.takes(t, nil, get, repeat(300*ms, 10)...)
				for range 3 {
					_ = call(t, s)
				}
				if got := s.hangs(t); got != policy.ReasonSlowEverywhere {
					t.Errorf("after slow answers, and calls that no server has seen: %s; want slow_everywhere", got)
				}
			})
		})
	}
}

// A method whose deadline is its normal end, as a long poll, does not speak for others.
func TestLongPolls(t *testing.T) {
	for name, step := range map[string]testserver.Step{
		"hang":                testserver.Hang(),
		"the server's status": testserver.Fail(codes.DeadlineExceeded).Delay(990 * ms),
		"an empty answer":     text("").Delay(950 * ms),
	} {
		t.Run(name, func(t *testing.T) {
			const poll = "/acme.orders.v1.OrderService/WatchOrders"
			fresh(t, watchful(false), func(t *testing.T, s scene) {
				s.takes(t, nil, get, repeat(10*ms, 20)...)
				s.On(poll, step)
				var polls sync.WaitGroup
				for range 5 {
					polls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						_, _ = s.call(ctx, poll)
					})
					time.Sleep(ms)
				}
				polls.Wait()
				s.On(get, down().Times(1), text("retried"))
				if got, err := s.call(t.Context(), get); got != "retried" {
					t.Errorf("a retry of another method: %q, %v", got, err)
				}
				if got := s.hangs(t); got != policy.ReasonHedge {
					t.Errorf("an attempt beside a slow one of another method: %s; want hedge", got)
				}
			})
		})
	}
}

// dialSlowly returns a connection over which the dialer takes its time.
func dialSlowly(t *testing.T, r *interceptor.Retrier, each time.Duration) (*testserver.Server, *grpc.ClientConn) {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	server := testserver.Start(t, testserver.Listener(lis))
	return server, over(t, r, lis, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		time.Sleep(each)
		return lis.DialContext(ctx)
	}))
}

// While the first connection is made, no hedge is sent, and no attempt after a timeout: it would wait for the same connection.
func TestConnecting_OneRequestEach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]spec.Config{
		"hedges":           hedged(),
		"hedges at once":   hedged(func(h *spec.Hedge) { h.HedgingDelay = 0; h.MaxAttempts = 2 }),
		"hedges, quantile": byQuantile(),
		"beside":           watchful(false),
		"in place":         watchful(true),
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := mustNew(t, mustSet(t, c), quiet)
					server, conn := dialSlowly(t, r, 300*ms)
					r.KnowLatency(conn, get, time.Hour)
					server.On(get, text("").Delay(50*ms))
					began := time.Now()
					var calls sync.WaitGroup
					for range 50 {
						calls.Go(func() {
							if err := exchange(t.Context(), conn, desc, get); err != nil {
								t.Error(err)
							}
						})
					}
					calls.Wait()
					most := 50
					if name == "hedges at once" {
						most = 100 // once it is connected
					}
					if n, took := server.Count(get), time.Since(began); n > most || took != 350*ms {
						t.Errorf("%d requests for 50 calls in %v; want %d in 350ms", n, took, most)
					}
				})
			})
		}
	}
}

// The time of an attempt begins when it has a connection, at the latest when that was seen.
func TestConnecting_TheClockBeginsAfterwards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]spec.Config{"hedges": hedged(), "beside": watchful(false), "in place": watchful(true)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustSet(t, c), quiet)
				server, conn := dialSlowly(t, r, 250*ms)
				r.KnowLatency(conn, get, time.Hour)
				server.On(get, testserver.Hang().Times(1), text("second"))
				reply := new(wrapperspb.StringValue)
				testkit.NoError(t, conn.Invoke(t.Context(), get, wrapperspb.String("x"), reply))
				first, last := server.Attempts()[0].Time, server.Attempts()[server.Count(get)-1].Time
				if apart := last.Sub(first); server.Count(get) != 2 || apart < 100*ms || apart > 500*ms || reply.GetValue() != "second" {
					t.Errorf("%d requests, %v apart, %q; want a second after a delay that begins when the first is connected",
						server.Count(get), apart, reply.GetValue())
				}
			})
		})
	}
}

// If the connection of a hanging attempt goes away, the channel is idle. The call has it connect, and then sends its hedge.
func TestConnecting_IdleChannel(t *testing.T) {
	t.Parallel()
	for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustSet(t, hedged()), quiet)
				var requests atomic.Int64
				conn := speaking(t, r, func(f *http2.Framer, frame http2.Frame) {
					headers, ok := frame.(*http2.HeadersFrame)
					if !ok {
						return
					}
					if requests.Add(1) == 1 {
						_ = f.WriteGoAway(headers.StreamID, http2.ErrCodeNo, nil)
						return // and hangs
					}
					complete(f, headers.StreamID)
				})
				r.KnowLatency(conn, get, time.Hour)
				time.AfterFunc(50*ms, func() {
					if state := conn.GetState(); state != connectivity.Idle {
						t.Errorf("the channel is %v; want IDLE", state)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				err := exchange(ctx, conn, desc, get)
				if took := time.Since(began); err != nil || requests.Load() != 2 || took > 300*ms {
					t.Errorf("%v after %v and %d requests; want the hedge's answer", err, took, requests.Load())
				}
			})
		})
	}
}

// The rules help a healthy service: what is usual is known after a few responses, and few calls need no traffic.

// Twenty good calls, however far apart, and then one that hangs: the hedge is sent.
func TestHelps_HedgeAfterGoodCalls(t *testing.T) {
	testkit.Long(t)
	for _, within := range []time.Duration{200 * ms, 20 * time.Second} {
		for name, c := range map[string]spec.Config{"hedges": hedged(), "beside": watchful(false)} {
			t.Run(fmt.Sprint(name, " ", within), func(t *testing.T) {
				paid(c)
				fresh(t, c, func(t *testing.T, s scene) {
					times := testkit.NewTimes(5*ms, 0.4, 2)
					s.On(get, answeringIn(times))
					for range 20 {
						began := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						testkit.Must(s.call(ctx, get))(t)
						cancel()
						time.Sleep(max(within/20-time.Since(began), 0))
					}
					if got := s.hangs(t); got != policy.ReasonHedge {
						t.Errorf("%s; want hedge", got)
					}
				})
			})
		}
	}
}

// README's policy retries calls that fail twice and then succeed, however seldom they come.
func TestHelps_ReadmesPolicy(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	page := string(testkit.Must(os.ReadFile("../README.md"))(t))
	_, page, _ = strings.Cut(page, "\n```yaml\n")
	file, _, ok := strings.Cut(page, "\n```\n")
	if !ok || !strings.Contains(file, "\nmethodConfig:") {
		t.Fatalf("README has no policy: %q", file)
	}
	for _, every := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustParse(t, file), quiet)
				s := scene{Server: testserver.Start(t), journal: new(journal), retrier: r}
				s.conn = s.Dial(t, r.DialOptions()...)
				for i := range 20 {
					s.On(get, down().Times(2), text("third"))
					began := time.Now()
					if _, err := s.call(t.Context(), get); err != nil {
						t.Errorf("call %d: %v (%s)", i+1, err, reasonOf(err))
					}
					time.Sleep(every - time.Since(began))
				}
			})
		})
	}
}

// oneRefused is how calls come out of which a server refuses one of four, after 1 ms.
type oneRefused struct {
	median      time.Duration // of the answers
	sigma       float64       // their spread
	cached      float64       // part of the calls that a cache in the client answers
	cachedThere float64       // part that a cache of the server answers in 1 ms
	before      func(t *testing.T, s scene)
}

// play returns the part that succeeds of those calls that the cache in the client does not answer.
func (r oneRefused) play(t *testing.T) float64 {
	t.Helper()
	var asked, ok atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		retry := plain()
		retry.Backoff.Jitter, retry.Budget = "FULL", ""
		times := testkit.NewTimes(r.median, r.sigma, 2)
		s := scene{Server: testserver.Start(t), journal: new(journal), retrier: mustNew(t, mustSet(t, config(retry)), quiet, interceptor.WithRandom(testkit.NewTimes(0, 0, 2).Chance))}
		s = s.caching(t)
		if r.before != nil {
			r.before(t, s)
		}
		s.On(get, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			switch {
			case times.Chance() < 0.25:
				return down().Delay(ms)
			case times.Chance() < r.cachedThere:
				return text("").Delay(ms)
			default:
				return text("").Delay(times.Draw())
			}
		}))
		var running sync.WaitGroup
		for range 2000 {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				here := times.Chance() < r.cached
				if here {
					ctx = cached(ctx)
				}
				if _, err := s.call(ctx, get); !here {
					asked.Add(1)
					if err == nil {
						ok.Add(1)
					}
				}
			})
			time.Sleep(50 * ms)
		}
		running.Wait()
	})
	return float64(ok.Load()) / float64(asked.Load())
}

// With an ordinary spread of times, after an error that came in 1 ms, with caches, and after two seconds without tokens, nearly as many
// calls succeed as with constant times.
func TestHelps_OneOfFourRefuses(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	notFound := func(t *testing.T, s scene) {
		t.Helper()
		s.On(get, testserver.Fail(codes.NotFound).Delay(ms))
		_, _ = s.call(t.Context(), get)
	}
	// For two seconds all requests are refused, until the bucket is empty.
	noTokens := func(t *testing.T, s scene) {
		t.Helper()
		s.On(get, down())
		for range 40 {
			_, _ = s.call(t.Context(), get, interceptor.MaxAttempts(2))
		}
		if b := inUse(s.retrier)[0].Balance; b >= 1 {
			t.Errorf("a balance of %v; want none", b)
		}
	}
	for _, median := range []time.Duration{80 * ms, 110 * ms, 150 * ms, 200 * ms, 250 * ms} {
		t.Run(median.String(), func(t *testing.T) {
			t.Parallel()
			constant := oneRefused{median: median}.play(t)
			for name, row := range map[string]oneRefused{
				"spread":                              {sigma: 0.4},
				"spread, after one NOT_FOUND in 1 ms": {sigma: 0.4, before: notFound},
				"spread, a cache in the client":       {sigma: 0.4, cached: 0.05},
				"spread, a cache of the server":       {sigma: 0.4, cachedThere: 0.05},
				"spread, no tokens at first":          {sigma: 0.4, before: noTokens},
			} {
				row.median = median
				if got := row.play(t); constant < 0.97 || got < constant-0.03 {
					t.Errorf("%s: %.1f %% succeed; with constant times %.1f %%", name, 100*got, 100*constant)
				} else {
					t.Logf("%s: %.1f %% succeed; with constant times %.1f %%", name, 100*got, 100*constant)
				}
			}
		})
	}
}

// In an outage whose servers also send errors that the policy doesn't list, retries end as in any other: such errors don't help, also if no
// retry follows them. Errors that speak of the request do.
func TestOutage_PaysNothing(t *testing.T) {
	testkit.Long(t)
	for name, row := range map[string]struct {
		codes []codes.Code
		least float64 // requests a call
		most  float64
	}{
		"UNAVAILABLE":                {[]codes.Code{codes.Unavailable}, 1, 1.05},
		"and INTERNAL":               {[]codes.Code{codes.Unavailable, codes.Internal}, 1, 1.05},
		"and UNKNOWN":                {[]codes.Code{codes.Unavailable, codes.Unknown}, 1, 1.05},
		"and DATA_LOSS":              {[]codes.Code{codes.Unavailable, codes.DataLoss}, 1, 1.05},
		"and UNIMPLEMENTED":          {[]codes.Code{codes.Unavailable, codes.Unimplemented}, 1, 1.05},
		"and ABORTED":                {[]codes.Code{codes.Unavailable, codes.Aborted}, 1, 1.05},
		"NOT_FOUND is an answer":     {[]codes.Code{codes.Unavailable, codes.NotFound}, 1.5, 5},
		"OUT_OF_RANGE is an answer":  {[]codes.Code{codes.Unavailable, codes.OutOfRange}, 1.5, 5},
		"UNAUTHENTICATED is another": {[]codes.Code{codes.Unavailable, codes.Unauthenticated}, 1.5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget, retry.MaxAttempts = "", 5
			fresh(t, config(retry), func(t *testing.T, s scene) {
				draw := testkit.NewTimes(0, 0, 3)
				s.On(get, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					return testserver.Fail(row.codes[int(draw.Chance()*float64(len(row.codes)))])
				}))
				const calls = 1000
				for range calls {
					_, _ = s.call(t.Context(), get)
					time.Sleep(50 * ms)
				}
				if perCall := float64(s.Count(get)) / calls; perCall < row.least || perCall > row.most {
					t.Errorf("%.2f requests a call; want %v to %v", perCall, row.least, row.most)
				}
			})
		})
	}
}
