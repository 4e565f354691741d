// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"io"
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

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// retries is a service config's retry policy for the service of the tests: so many attempts after
// UNAVAILABLE, 100, 200 and 400 ms apart before jitter. more stands beside methodConfig.
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
	s := resolver.State{Addresses: []resolver.Address{{Addr: l.Addr()}}}
	if config != "" {
		s.ServiceConfig = (*l.cc).ParseServiceConfig(config)
	}
	return s
}

// dialLive connects to the server of s; the resolver delivers the config, through wrap if that is not nil.
func dialLive(t *testing.T, s scene, config string, wrap func(resolver.Builder) resolver.Builder) live {
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
	opts := append(s.DialOptions(), s.retrier.DialOptions()...)
	conn, err := grpc.NewClient("live:///orders", append(opts, grpc.WithResolvers(builder))...)
	if err != nil {
		t.Fatal(err)
	}
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
		options := append([]interceptor.Option{withJournal(j), half, interceptor.FromServiceConfig()}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: mustNew(t, set, options...)}
		j.warnings = nil
		test(t, s)
	})
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

func TestWithoutAFileTheDeliveredPolicyIsCarriedOutFromTheFirstCallOn(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
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

func TestTheFirstCallIsRetriedWithoutObserversToo(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		s.retrier = mustNew(t, nil, interceptor.FromServiceConfig(), half)
		timed := strings.Replace(retries("3", ""), `"retryPolicy"`, `"timeout": "0.12s", "retryPolicy"`, 1)
		l := dialLive(t, s, timed, nil)
		l.wants(t, "two attempts fit into the timeout", get, 2, policy.ReasonDeadlineTooClose)
		l = dialLive(t, s, retries("3", ""), s.retrier.Resolver)
		l.wants(t, "through a wrapped resolver", get, 3, policy.ReasonAttemptsExhausted)
	})
}

func TestADefaultServiceConfigIsFollowedToo(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultServiceConfig(retries("2", "")))...)
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != 2 {
			t.Errorf("%d attempts, %v; want 2", s.Count(get), err)
		}
	})
}

func TestGRPCsOwnPolicyIsNotSaidToMultiplyWhenItIsOff(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "a call", get, 4, policy.ReasonAttemptsExhausted)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s; want nothing", s.warnings)
		}
	})
}

func TestAChangeHoldsForTheNextCallAndNotForThoseThatRun(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
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
		l.wants(t, "after", get, 4, policy.ReasonAttemptsExhausted)
		l.deliver(entryOf(`"waitForReady": true`, ""))
		l.wants(t, "without a policy", get, 1, policy.ReasonNonRetryable)
		l.deliver("{}")
		l.wants(t, "without an entry", get, 1, policy.ReasonNonRetryable)
		l.deliver(retries("3", ""))
		l.wants(t, "with one again", get, 3, policy.ReasonAttemptsExhausted)
	})
}

func TestTheFilesEntryForAMethodWinsOverWhatIsDelivered(t *testing.T) {
	retry := plain()
	retry.MaxAttempts = 2
	named := func(method string, safe policy.Idempotency, retry *policy.RetrySpec) policy.MethodConfig {
		return policy.MethodConfig{
			Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: method}},
			Spec:  policy.Spec{Retry: retry, Idempotency: safe},
		}
	}
	set := mustSet(t, policy.Config{Methods: []policy.MethodConfig{
		named("GetOrder", policy.IdempotencyByName, &retry), named("Pay", policy.IdempotencyNone, &retry), named("Ship", policy.IdempotencyByName, nil),
	}})
	playLive(t, set, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("4", ""), nil)
		const service = "/acme.orders.v1.OrderService/"
		l.wants(t, "the file has a policy", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "the file calls it unsafe", service+"Pay", 1, policy.ReasonNotIdempotent)
		l.wants(t, "the file has an entry without retries", service+"Ship", 1, policy.ReasonNonRetryable)
		l.wants(t, "the file says nothing, so gRPC's own meaning holds: safe", create, 4, policy.ReasonAttemptsExhausted)
	})
}

func TestConnectionsOfOneRetrierFollowTheirOwnConfigsAndShareTheBudget(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		one, two := dialLive(t, s, retries("2", ""), nil), dialLive(t, s, retries("4", ""), nil)
		one.wants(t, "one", get, 2, policy.ReasonAttemptsExhausted)
		two.wants(t, "two", get, 4, policy.ReasonAttemptsExhausted)
		one.wants(t, "one again", get, 2, policy.ReasonAttemptsExhausted)
		for range 20 {
			_, _ = two.call(t.Context(), get)
		}
		one.wants(t, "one, with the budget that two has spent", get, 1, policy.ReasonBudgetExhausted)
	})
}

func TestADeliveredTimeoutEndsTheWholeCall(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(testserver.Fail(codes.Unavailable).Delay(300 * ms))
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

func TestStreamsFollowWhatIsDelivered(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On(get, down().Times(2), text("hello"))
		l := dialLive(t, s, retries("3", ""), nil)
		for _, what := range []string{"the first stream", "the second"} {
			s.Reset()
			s.On(get, down().Times(2), text("hello"))
			stream := l.open(t, t.Context(), serverStream)
			send(t, stream, "order 7")
			texts, err := receive(stream)
			if err != io.EOF || //nolint:errorlint // as gRPC has it
				len(texts) != 1 || s.Count(get) != 3 {
				t.Errorf("%s: %q, %v after %d attempts; want one text after 3", what, texts, err, s.Count(get))
			}
		}
	})
}

func TestWhatGRPCTakesButMeansNothingIsReportedOnceForEachConfig(t *testing.T) {
	lax := strings.Replace(retries("3", ""), `"UNAVAILABLE"`, `"UNAVAILABLE", "OK"`, 1)
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, lax, nil)
		for range 3 {
			l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
			l.deliver(lax) // as DNS does, again and again
		}
		want := "service config of live:///orders: retryPolicy for " + get + ": OK: is no failure, and is passed over in retryableStatusCodes"
		if len(s.warnings) != 1 || s.warnings[0] != want {
			t.Errorf("warned: %s\nwant %s", strings.Join(s.warnings, "\n"), want)
		}
		if all := s.retrier.Warnings(); len(all) != 1 || all[0].String() != want {
			t.Errorf("Warnings() = %v", all)
		}
	})
}

func TestADeliveredPolicyIsCutToTheRetriersMost(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
		l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "4: maxAttempts is cut to 3") {
			t.Errorf("warned: %s", s.warnings)
		}
	}, interceptor.WithMaxAttempts(3))
}

func TestAConfigThatGRPCRefusesChangesNothing(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("3", ""), s.retrier.Resolver)
		l.wants(t, "before", get, 3, policy.ReasonAttemptsExhausted)
		l.deliver(`{"methodConfig": 5}`)
		l.wants(t, "after", get, 3, policy.ReasonAttemptsExhausted)
		if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], "service config of live:///orders: is refused by gRPC, and not followed: json:") {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestWithoutASetThereMustBeSomethingToFollow(t *testing.T) {
	t.Parallel()
	if _, err := interceptor.New(nil); err == nil {
		t.Error("New(nil) makes a Retrier that never retries")
	}
	if _, err := interceptor.New(nil, interceptor.FromServiceConfig()); err != nil {
		t.Errorf("New(nil, FromServiceConfig()) = %v", err)
	}
}
