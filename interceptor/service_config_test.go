// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// retries returns a service config with a retry policy for the tests' service: the given attempts after UNAVAILABLE,
// 100, 200 and 400 ms apart before jitter. more follows methodConfig.
func retries(attempts, more string) string {
	return entryOf(`"retryPolicy": {"maxAttempts": `+attempts+`, "initialBackoff": "0.1s", "maxBackoff": "10s",
		"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`, more)
}

func entryOf(keys, more string) string {
	return `{"methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService"}], ` + keys + `}]` + more + `}`
}

// live is a client that follows the service config which its resolver delivers.
type live struct {
	scene

	resolver *manual.Resolver
	mu       *sync.Mutex // guards cc
	cc       *resolver.ClientConn
}

// deliver has the resolver deliver a service config, or none.
func (l live) deliver(config string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *l.cc == nil { // the first one, when the connection asks
		return
	}
	l.resolver.UpdateState(l.state(config))
	synctest.Wait()
}

func (l live) state(config string) resolver.State {
	s := resolver.State{Addresses: []resolver.Address{{Addr: l.Target()}}}
	if config != "" {
		s.ServiceConfig = (*l.cc).ParseServiceConfig(config)
	}
	return s
}

// dialLive connects to the server of s; the resolver delivers the config, through wrap if that is not nil.
func dialLive(t *testing.T, s scene, config string, wrap func(resolver.Builder) resolver.Builder, opts ...grpc.DialOption) live {
	t.Helper()
	l := live{scene: s, resolver: manual.NewBuilderWithScheme("live"), mu: new(sync.Mutex), cc: new(resolver.ClientConn)}
	l.resolver.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		*l.cc = cc
		l.resolver.InitialState(l.state(config))
	}
	var builder resolver.Builder = l.resolver
	if wrap != nil {
		builder = wrap(builder)
	}
	opts = slices.Concat(s.DialOptions(), s.retrier.DialOptions(), []grpc.DialOption{grpc.WithResolvers(builder)}, opts)
	conn := must.Get(grpc.NewClient("live:///orders", opts...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	l.conn = conn
	return l
}

// half is the chance of all tests with jitter: waits are half of the backoff.
var half = interceptor.WithRandom(func() float64 { return 0.5 })

// playLive runs a test in virtual time, with no policy file unless set says otherwise.
func playLive(t *testing.T, set *policy.Set, test func(t *testing.T, s scene), options ...interceptor.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		options := append([]interceptor.Option{withJournal(j), half, interceptor.WithServiceConfig()}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: mustNew(t, set, options...)}
		j.warnings = nil
		test(t, s)
	})
}

// playUnpaid is playLive without a file, in which no budget holds up retries.
func playUnpaid(t *testing.T, test func(t *testing.T, s scene)) {
	t.Helper()
	playLive(t, nil, test, interceptor.WithBudget("", budget.Unlimited))
}

// wants makes a call that fails and checks how often, and why it ended.
func (l live) wants(t *testing.T, what, method string, attempts int, why policy.Reason) {
	t.Helper()
	l.Reset()
	_, err := l.call(t.Context(), method)
	if got := l.Count(method); got != attempts || reasonOf(err) != why {
		t.Errorf("%s: %d attempts, %s (%v); want %d and %s", what, got, reasonOf(err), err, attempts, why)
	}
}

func TestServiceConfig_NoFile(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("3", ""), nil)
		for _, what := range []string{"the first call, begun before the resolver answered", "the second"} {
			l.wants(t, what, get, 3, policy.ReasonAttemptsExhausted)
			if got := s.waits(); got != "[50ms 100ms]" {
				t.Errorf("%s: waits %s; want half of 100 and 200 ms: full jitter", what, got)
			}
		}
		l.wants(t, "a method of another service", "/acme.Other/Get", 1, policy.ReasonNonRetryable)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestServiceConfig_FirstCallWithoutObservers(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		s.retrier = mustNew(t, nil, interceptor.WithServiceConfig(), half)
		timed := strings.Replace(retries("3", ""), `"retryPolicy"`, `"timeout": "0.12s", "retryPolicy"`, 1)
		l := dialLive(t, s, timed, nil)
		l.wants(t, "two attempts fit into the timeout", get, 2, policy.ReasonDeadlineTooClose)
		l = dialLive(t, s, retries("3", ""), s.retrier.Resolver)
		l.wants(t, "through a wrapped resolver", get, 3, policy.ReasonAttemptsExhausted)
	})
}

func TestServiceConfig_Default(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultServiceConfig(retries("2", "")))...)
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 2 {
			t.Errorf("%d attempts, %v; want 2", s.Count(get), err)
		}
	})
}

func TestServiceConfig_NothingMultiplies(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "a call", get, 4, policy.ReasonAttemptsExhausted)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s; want nothing", s.warnings)
		}
	})
}

func TestServiceConfig_Change(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("2", ""), nil)
		l.wants(t, "before", get, 2, policy.ReasonAttemptsExhausted)
		s.Reset()
		done := make(chan error)
		go func() {
			_, err := l.call(t.Context(), get)
			done <- err
		}()
		synctest.Wait() // in its backoff
		l.deliver(retries("4", ""))
		if err := <-done; s.Count(get) != 2 {
			t.Errorf("a call that ran made %d attempts, %v; want the 2 that it began with", s.Count(get), err)
		}
		time.Sleep(10 * time.Second) // for the budget
		l.wants(t, "after", get, 4, policy.ReasonAttemptsExhausted)
		l.deliver(entryOf(`"waitForReady": true`, ""))
		l.wants(t, "without a policy", get, 1, policy.ReasonNonRetryable)
		l.deliver("{}")
		l.wants(t, "without an entry", get, 1, policy.ReasonNonRetryable)
		l.deliver(retries("3", ""))
		time.Sleep(10 * time.Second) // for the budget
		l.wants(t, "with one again", get, 3, policy.ReasonAttemptsExhausted)
	})
}

func TestServiceConfig_FileWins(t *testing.T) {
	retry := plain()
	retry.MaxAttempts = 2
	named := func(method string, safe policy.Idempotency, retry *policy.RetrySpec) policy.MethodConfig {
		return policy.MethodConfig{
			Names: []string{"/acme.orders.v1.OrderService/" + method},
			Spec:  policy.Spec{Retry: retry, Idempotency: safe},
		}
	}
	set := mustSet(t, policy.Config{Methods: []policy.MethodConfig{
		named("GetOrder", "", &retry), named("Pay", policy.IdempotencyNone, &retry), named("Ship", "", nil),
	}})
	playLive(t, set, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""), nil)
		const service = "/acme.orders.v1.OrderService/"
		l.wants(t, "the file has a policy", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "the file calls it unsafe", service+"Pay", 1, policy.ReasonNotIdempotent)
		l.wants(t, "the file has an entry without retries", service+"Ship", 1, policy.ReasonNonRetryable)
		l.wants(t, "the file says nothing, so gRPC's own meaning holds: safe", create, 4, policy.ReasonAttemptsExhausted)
	})
}

func TestServiceConfig_ConnectionsShareTheBudget(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		one, two := dialLive(t, s, retries("2", ""), nil), dialLive(t, s, retries("3", ""), nil)
		one.wants(t, "one", get, 2, policy.ReasonAttemptsExhausted)
		two.wants(t, "two", get, 3, policy.ReasonAttemptsExhausted)
		one.wants(t, "one again", get, 2, policy.ReasonAttemptsExhausted)
		for range 20 {
			_, _ = two.call(t.Context(), get)
		}
		one.wants(t, "one, with the budget that two has spent", get, 1, policy.ReasonBudgetExhausted)
	})
}

func TestServiceConfig_MaxCallAttemptsOfTheConnection(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		for name, wrap := range map[string]func(resolver.Builder) resolver.Builder{"as gRPC reads it": nil, "whole": s.retrier.Resolver} {
			two := dialLive(t, s, retries("4", ""), wrap, grpc.WithMaxCallAttempts(2))
			four := dialLive(t, s, retries("4", ""), wrap)
			for range 2 {
				time.Sleep(20 * time.Second) // for the budget
				two.wants(t, name, get, 2, policy.ReasonAttemptsExhausted)
				four.wants(t, name, get, 4, policy.ReasonAttemptsExhausted)
			}
		}
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

// The first call begins without a policy, but the file's throttle counts it. Then its policy names another budget.
func TestServiceConfig_FirstBudgetIsFinished(t *testing.T) {
	p := &purse{grants: 9}
	set := mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}})
	playLive(t, set, func(t *testing.T, s scene) {
		s.On("*", down())
		own := strings.Replace(retries("3", `, "budgets": [{"name": "own", "ratio": {"minPerSecond": 100}}]`), `"maxAttempts"`, `"budget": "own", "maxAttempts"`, 1)
		l := dialLive(t, s, own, s.retrier.Resolver)
		l.wants(t, "the first call", get, 3, policy.ReasonAttemptsExhausted)
		if got := p.String(); p.started != 1 || got != "asked [], failed 0, returned 0, refunded 0, ok 0, bad 1" {
			t.Errorf("the first budget was told of %d calls: %s; want one that has ended", p.started, got)
		}
	}, interceptor.WithBudget("", p))
}

func TestServiceConfig_Timeout(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", testserver.Fail(codes.Unavailable).Delay(300*ms))
		timed := strings.Replace(retries("4", ""), `"retryPolicy"`, `"timeout": "1s", "retryPolicy"`, 1)
		l := dialLive(t, s, timed, nil)
		for _, what := range []string{"the first call", "the second"} {
			s.Reset()
			start := time.Now()
			_, err := l.call(t.Context(), get) // attempts at 0, 350 and 750 ms
			if took := time.Since(start); took != time.Second || s.Count(get) != 3 || status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%s: %d attempts in %v, %v; want 3 in 1s", what, s.Count(get), took, err)
			}
		}
	})
}

func TestServiceConfig_Streams(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On(get, down().Times(2), text("hello"))
		l := dialLive(t, s, retries("3", ""), nil)
		for _, what := range []string{"the first stream", "the second"} {
			s.Reset()
			s.On(get, down().Times(2), text("hello"))
			stream := l.open(t, t.Context(), serverStream)
			send(t, stream, "order 7")
			texts, err := receive(stream)
			if err != io.EOF ||
				len(texts) != 1 || s.Count(get) != 3 {
				t.Errorf("%s: %q, %v after %d attempts; want one text after 3", what, texts, err, s.Count(get))
			}
		}
	})
}

func TestServiceConfig_SetMayBeNil(t *testing.T) {
	t.Parallel()
	if _, err := interceptor.New(nil); err == nil {
		t.Error("New(nil) makes a Retrier that never retries")
	}
	if _, err := interceptor.New(nil, interceptor.WithServiceConfig()); err != nil {
		t.Errorf("New(nil, WithServiceConfig()) = %v", err)
	}
}

func TestServiceConfig_ReloadChangesTheBudget(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}}), func(t *testing.T, s scene) {
		s.On("*", down())
		for _, wrap := range []func(resolver.Builder) resolver.Builder{nil, s.retrier.Resolver} {
			l := dialLive(t, s, retries("4", ""), wrap)
			l.wants(t, "with 100 tokens", get, 4, policy.ReasonAttemptsExhausted)
			must.Do(t, s.retrier.Reload(mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 4, TokenRatio: 1}})))
			l.wants(t, "with 4", get, 2, policy.ReasonBudgetExhausted)
			must.Do(t, s.retrier.Reload(mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}})))
			s.On("*", testserver.OK())
			for range 100 {
				_, _ = l.call(t.Context(), get)
			}
			s.On("*", down())
		}
	})
}

func TestServiceConfig_ReloadRefillsNothing(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}}), func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "with tokens", get, 4, policy.ReasonAttemptsExhausted)
		must.Do(t, s.retrier.Reload(mustSet(t, policy.Config{})))
		l.wants(t, "with a ratio that has earned nothing", get, 1, policy.ReasonBudgetExhausted)
	})
}

// A call waits for a connection by the policy of a service config as by a file's, and as gRPC does where that says so.
func TestServiceConfig_ConnectionWait(t *testing.T) {
	for name, row := range map[string]struct {
		keys     string
		attempts int
		reason   policy.Reason
		took     time.Duration
	}{
		"by default":            {"", 1, policy.ReasonNotConnected, 3 * time.Second},
		"waitForReady is false": {`, "waitForReady": false`, 3, policy.ReasonAttemptsExhausted, 250 * ms},
		"waitForReady is true":  {`, "waitForReady": true`, 1, policy.ReasonDeadlineExceeded, 5 * time.Second},
	} {
		for how, wrapped := range map[string]bool{"as gRPC shows it": false, "whole": true} {
			t.Run(name+"/"+how, func(t *testing.T) {
				playLive(t, nil, func(t *testing.T, s scene) {
					var wrap func(resolver.Builder) resolver.Builder
					if wrapped {
						wrap = s.retrier.Resolver
					}
					const retry = `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "0.1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`
					l := dialLive(t, s, entryOf(retry+row.keys, ""), wrap)
					l.leave()
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					began := time.Now()
					_, err := l.call(ctx, get)
					if took := time.Since(began); reasonOf(err) != row.reason || len(s.attempts) != row.attempts || took > row.took {
						t.Errorf("%v (%s) after %v and %d attempts; want %s after %v and %d", err, reasonOf(err), took, len(s.attempts), row.reason, row.took, row.attempts)
					}
				})
			})
		}
	}
}

// received is a connection that has received a service config, through wrap if that is not nil.
func received(t *testing.T, target, config string, wrap func(resolver.Builder) resolver.Builder) *grpc.ClientConn {
	t.Helper()
	srv := testserver.Start(t)
	m := manual.NewBuilderWithScheme("live")
	m.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		m.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: srv.Target()}}, ServiceConfig: cc.ParseServiceConfig(config)})
	}
	var builder resolver.Builder = m
	if wrap != nil {
		builder = wrap(m)
	}
	conn := must.Get(grpc.NewClient(target, slices.Concat(srv.DialOptions(), []grpc.DialOption{grpc.WithResolvers(builder)})...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Invoke(t.Context(), get, nil, nil, grpc.WaitForReady(true)); err == nil {
		t.Fatal("a call without messages succeeds")
	}
	return conn
}

func TestServiceConfig_SuccessAllocatesNothing(t *testing.T) {
	for _, row := range []struct {
		name, target string
		wrapped      bool
	}{
		{"as gRPC reads it", "live:///orders", false},
		{"whole", "live:///orders", true},
		{"whole, of a target that is not canonical", "live:orders.of.a.service.with.a.long.name", true},
	} {
		retrier := mustNew(t, nil, interceptor.WithServiceConfig())
		var wrap func(resolver.Builder) resolver.Builder
		if row.wrapped {
			wrap = retrier.Resolver
		}
		conn := received(t, row.target, retries("4", ""), wrap)
		if conn.GetMethodConfig(get).RetryPolicy == nil {
			t.Fatal("gRPC has received no policy")
		}
		unary := retrier.Unary()
		call := func() { _ = unary(t.Context(), get, nil, nil, conn, finished) }
		call()
		if n := testing.AllocsPerRun(1000, call); n > slack {
			t.Errorf("%s: a call that succeeds at once allocates %v times; want 0", row.name, n)
		}
	}
}

// BenchmarkServiceConfig is what the look at the delivered policy adds to a call that succeeds at once.
func BenchmarkServiceConfig(b *testing.B) {
	conn, err := grpc.NewClient("passthrough:///orders", grpc.WithTransportCredentials(noCredentials), grpc.WithDefaultServiceConfig(retries("4", "")))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()
	for conn.GetMethodConfig(get).RetryPolicy == nil {
		if !conn.WaitForStateChange(b.Context(), conn.GetState()) {
			b.Fatal("no service config")
		}
	}
	for name, unary := range map[string]grpc.UnaryClientInterceptor{
		"delivered": mustNew(b, nil, interceptor.WithServiceConfig()).Unary(),
		"file":      mustNew(b, mustSet(b, config(plain()))).Unary(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = unary(b.Context(), get, nil, nil, conn, finished)
				}
			})
		})
	}
}
