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

// dialLive connects to the server of s; the resolver delivers the config.
func dialLive(t *testing.T, s scene, config string, opts ...grpc.DialOption) live {
	t.Helper()
	l := live{scene: s, resolver: manual.NewBuilderWithScheme("live"), mu: new(sync.Mutex), cc: new(resolver.ClientConn)}
	l.resolver.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		*l.cc = cc
		l.resolver.InitialState(l.state(config))
	}
	opts = slices.Concat(s.DialOptions(), s.retrier.DialOptions(), []grpc.DialOption{grpc.WithResolvers(l.resolver)}, opts)
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
	playLive(t, nil, test, interceptor.WithBudget("", forAll(budget.Unlimited)))
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
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("3", ""))
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
		l := dialLive(t, s, timed)
		l.wants(t, "two attempts fit into the timeout", get, 2, policy.ReasonDeadlineTooClose)
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
		l := dialLive(t, s, retries("4", ""))
		l.wants(t, "a call", get, 4, policy.ReasonAttemptsExhausted)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s; want nothing", s.warnings)
		}
	})
}

func TestServiceConfig_Change(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("2", ""))
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
	named := func(method string, safe string, retry *policy.RetrySpec) policy.MethodConfig {
		return policy.MethodConfig{
			Names: []string{"/acme.orders.v1.OrderService/" + method},
			Spec:  policy.Spec{Retry: retry, Idempotency: safe},
		}
	}
	set := mustSet(t, policy.Config{Methods: []policy.MethodConfig{
		named("GetOrder", "", &retry), named("Pay", "NONE", &retry), named("Ship", "", nil),
	}})
	playLive(t, set, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""))
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
		one, two := dialLive(t, s, retries("2", "")), dialLive(t, s, retries("3", ""))
		one.wants(t, "one", get, 2, policy.ReasonAttemptsExhausted)
		two.wants(t, "two", get, 3, policy.ReasonAttemptsExhausted)
		for range 20 {
			_, _ = two.call(t.Context(), get)
		}
		one.wants(t, "one, with the budget that two has spent", get, 1, policy.ReasonBudgetExhausted)
	})
}

func TestServiceConfig_MaxCallAttempts(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		two := dialLive(t, s, retries("4", ""), grpc.WithMaxCallAttempts(2))
		ten := dialLive(t, s, retries("9", ""), grpc.WithMaxCallAttempts(10))
		for range 2 {
			two.wants(t, "the connection's limit", get, 2, policy.ReasonAttemptsExhausted)
			ten.wants(t, "the Retrier's limit", get, 5, policy.ReasonAttemptsExhausted)
		}
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "cut to 5") {
			t.Errorf("warned: %s; want one that 9 attempts are cut", s.warnings)
		}
	})
}

// What gRPC accepts, and stagger's own files don't.
func TestServiceConfig_ListsOK(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", text("a"))
		l := dialLive(t, s, strings.Replace(retries("3", ""), `"UNAVAILABLE"`, `"OK", "UNAVAILABLE"`, 1))
		if got, err := l.call(t.Context(), get); got != "a" || err != nil || s.Count(get) != 1 {
			t.Errorf("%q, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// gRPC shows only its own retry policies: the rest of a service config has no effect.
func TestServiceConfig_Unseen(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		hedges := `"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.01s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`
		dialLive(t, s, entryOf(hedges, "")).wants(t, "hedgingPolicy", get, 1, policy.ReasonNonRetryable)
		own := strings.Replace(retries("3", ""), `"maxAttempts"`, `"commitOn": "HEADERS", "jitter": "NONE", "maxAttempts"`, 1)
		l := dialLive(t, s, own)
		if l.wants(t, "own keys", get, 3, policy.ReasonAttemptsExhausted); s.waits() != "[50ms 100ms]" {
			t.Errorf("waits %s; want full jitter", s.waits())
		}
	})
}

func TestServiceConfig_Timeout(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", testserver.Fail(codes.Unavailable).Delay(300*ms))
		timed := strings.Replace(retries("4", ""), `"retryPolicy"`, `"timeout": "1s", "retryPolicy"`, 1)
		l := dialLive(t, s, timed)
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
		l := dialLive(t, s, retries("3", ""))
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

// A service config may bring the first timeout of a context that never ends.
func TestServiceConfig_StreamTimeout(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On(get, down().Times(2), text("hello"))
		timed := strings.Replace(retries("3", ""), `"retryPolicy"`, `"timeout": "1s", "retryPolicy"`, 1)
		stream := dialLive(t, s, timed).open(t, context.WithoutCancel(t.Context()), serverStream)
		send(t, stream, "order 7")
		if texts, err := receive(stream); err != io.EOF || len(texts) != 1 || s.Count(get) != 3 {
			t.Errorf("%q, %v after %d attempts; want one text after 3", texts, err, s.Count(get))
		}
	})
}

// Unary calls and streams that may not be retried say why.
func TestServiceConfig_Off(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On(get, down())
		l := dialLive(t, s, retries("3", ""))
		must.Do(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}))
		l.wants(t, "unary", get, 1, policy.ReasonModeOff)
		stream := l.open(t, t.Context(), serverStream)
		send(t, stream, "order 7")
		if _, err := receive(stream); reasonOf(err) != policy.ReasonModeOff || s.Count(get) != 2 {
			t.Errorf("stream: %s after %d attempts (%v); want %s", reasonOf(err), s.Count(get), err, policy.ReasonModeOff)
		}
		l.deliver("{}")
		stream = l.open(t, t.Context(), serverStream)
		send(t, stream, "order 7")
		if _, err := receive(stream); reasonOf(err) != policy.ReasonNonRetryable {
			t.Errorf("without a policy: %s (%v); want %s", reasonOf(err), err, policy.ReasonNonRetryable)
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
		l := dialLive(t, s, retries("4", ""))
		l.wants(t, "with 100 tokens", get, 4, policy.ReasonAttemptsExhausted)
		must.Do(t, s.retrier.Reload(mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 4, TokenRatio: 1}})))
		l.wants(t, "with 4", get, 2, policy.ReasonBudgetExhausted)
	})
}

func TestServiceConfig_ReloadRefillsNothing(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}}), func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""))
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
		t.Run(name, func(t *testing.T) {
			playLive(t, nil, func(t *testing.T, s scene) {
				const retry = `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "0.1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`
				l := dialLive(t, s, entryOf(retry+row.keys, ""))
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

func TestServiceConfig_SuccessAllocatesNothing(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///orders", grpc.WithTransportCredentials(noCredentials))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	unary := mustNew(t, nil, interceptor.WithServiceConfig()).Unary()
	call := func() { _ = unary(t.Context(), get, nil, nil, conn, finished) }
	call()
	if n := testing.AllocsPerRun(1000, call); n > slack {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}
