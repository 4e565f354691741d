// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestThroughAWrappedResolverHedgingIsSeen(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(testserver.OK().Delay(time.Second))
		hedged := entryOf(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`, "")
		l := dialLive(t, s, hedged, s.retrier.Resolver)
		if _, err := l.call(t.Context(), get); err != nil { // the first, which begins before the resolver answers
			t.Fatal(err)
		}
		s.Reset()
		if _, err := l.call(t.Context(), get); err != nil || s.waits() != "[200ms 200ms]" {
			t.Errorf("%v, hedges after %s; want two, each after 200 ms", err, s.waits())
		}
	})
}

func TestThroughAWrappedResolverStaggersOwnKeysAreSeen(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		const none = `"jitter": "NONE", "perCode": [{"codes": ["UNAVAILABLE"], "initialBackoff": "1s"}], "maxAttempts"`
		l := dialLive(t, s, strings.Replace(retries("3", ""), `"maxAttempts"`, none, 1), s.retrier.Resolver)
		for _, what := range []string{"the first call", "the second"} {
			l.wants(t, what, get, 3, policy.ReasonAttemptsExhausted)
			if s.waits() != "[1s 2s]" {
				t.Errorf("%s: waits %s; want 1s and 2s, without jitter", what, s.waits())
			}
		}
		l.deliver(strings.Replace(retries("3", ""), `"name"`, `"idempotency": "NONE", "name"`, 1))
		l.wants(t, "declared unsafe", get, 1, policy.ReasonNotIdempotent)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestThroughAWrappedResolverRetryThrottlingIsTheBudget(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("2", `, "retryThrottling": {"maxTokens": 4, "tokenRatio": 0.5}`), s.retrier.Resolver)
		const other = "/acme.Other/Get" // has no policy, and counts all the same
		l.wants(t, "4 tokens, then 3", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "2 tokens, after that failure", get, 1, policy.ReasonBudgetExhausted)
		s.Default(testserver.OK())
		for range 6 {
			if _, err := l.call(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		s.Default(down())
		l.wants(t, "4 tokens again", get, 2, policy.ReasonAttemptsExhausted)
		l.deliver(retries("2", `, "retryThrottling": {"maxTokens": 8, "tokenRatio": 0.5}`))
		l.wants(t, "2 tokens of 4 are 4 of 8: a new config refills nothing", get, 1, policy.ReasonBudgetExhausted)
		s.Default(testserver.OK())
		for range 20 {
			_, _ = l.call(t.Context(), other)
		}
		s.Default(down())
		l.wants(t, "8 tokens of 8", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "6 tokens", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "4 tokens", get, 1, policy.ReasonBudgetExhausted)
		l.deliver(retries("2", ""))
		l.wants(t, "a budget of another kind begins with nothing", get, 1, policy.ReasonBudgetExhausted)
	})
}

func TestWhatOnlyGRPCMindsNotIsReportedAndItsReadingFollowed(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		lax := strings.Replace(retries("3", `, "retryThrottling": {"maxTokens": 1.5, "tokenRatio": 1}`), `"name"`, `"owner": "us", "timeout": "7s", "timeout": "9s", "name"`, 1)
		l := dialLive(t, s, lax, s.retrier.Resolver)
		for range 3 {
			l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
			l.deliver(lax)
		}
		const where = "service config of live:///orders:"
		for i, want := range []string{
			where + " has problems that gRPC does not mind; only its retry policies",
			where + "1:20: methodConfig[0].owner: unknown key; must be",
			where + "1:52: methodConfig[0].timeout: stands twice, first at line 1, column 35",
			where + "2:104: retryThrottling.maxTokens: 1.5: must be a whole number",
		} {
			if len(s.warnings) != 4 || !strings.HasPrefix(s.warnings[i], want) {
				t.Fatalf("warned:\n%s\nwant four, number %d with %s", strings.Join(s.warnings, "\n"), i+1, want)
			}
		}
		if all := s.retrier.Warnings(); len(all) != 4 {
			t.Errorf("Warnings() = %v", all)
		}
	})
}

func TestOfManyConfigsTheLatestAreFollowedWhole(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.Default(down())
		config := func(i int) string {
			return strings.Replace(retries("2", ""), `"maxAttempts"`, fmt.Sprintf(`"minAttemptTime": "%ds", "jitter": "NONE", "maxAttempts"`, i), 1)
		}
		l := dialLive(t, s, config(1), s.retrier.Resolver)
		l.wants(t, "the first", get, 2, policy.ReasonAttemptsExhausted)
		for i := range 1200 {
			l.deliver(config(i + 2))
		}
		l.wants(t, "the last", get, 2, policy.ReasonAttemptsExhausted)
		if s.waits() != "[100ms]" {
			t.Errorf("waits %s; want 100ms, without jitter", s.waits())
		}
	})
}

func TestAReloadChangesTheBudgetOfDeliveredPolicies(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{Throttling: &policy.ThrottleSpec{MaxTokens: 100, TokenRatio: 1}}), func(t *testing.T, s scene) {
		s.Default(down())
		for _, wrap := range []func(resolver.Builder) resolver.Builder{nil, s.retrier.Resolver} {
			l := dialLive(t, s, retries("4", ""), wrap)
			l.wants(t, "with 100 tokens", get, 4, policy.ReasonAttemptsExhausted)
			if err := s.retrier.Reload(mustSet(t, policy.Config{Throttling: &policy.ThrottleSpec{MaxTokens: 4, TokenRatio: 1}})); err != nil {
				t.Fatal(err)
			}
			l.wants(t, "with 4", get, 2, policy.ReasonBudgetExhausted)
			if err := s.retrier.Reload(mustSet(t, policy.Config{Throttling: &policy.ThrottleSpec{MaxTokens: 100, TokenRatio: 1}})); err != nil {
				t.Fatal(err)
			}
			s.Default(testserver.OK())
			for range 100 {
				_, _ = l.call(t.Context(), get)
			}
			s.Default(down())
		}
	})
}

func TestAReloadToAnotherKindOfBudgetRefillsNothingForDeliveredPolicies(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{Throttling: &policy.ThrottleSpec{MaxTokens: 100, TokenRatio: 1}}), func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "with tokens", get, 4, policy.ReasonAttemptsExhausted)
		if err := s.retrier.Reload(mustSet(t, policy.Config{})); err != nil {
			t.Fatal(err)
		}
		l.wants(t, "with a ratio that has earned nothing", get, 1, policy.ReasonBudgetExhausted)
	})
}

func TestWithoutFromServiceConfigAWrappedResolverDoesNothing(t *testing.T) {
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.Default(down())
		l := dialLive(t, s, retries("4", ""), s.retrier.Resolver)
		l.wants(t, "a call", get, 1, policy.ReasonNonRetryable)
	})
}

func TestAResolverIsWrappedWithItsAuthority(t *testing.T) {
	t.Parallel()
	retrier := mustNew(t, nil, interceptor.FromServiceConfig())
	if _, ok := retrier.Resolver(manual.NewBuilderWithScheme("live")).(resolver.AuthorityOverrider); ok {
		t.Error("a resolver that does not name the authority does so when wrapped")
	}
	o, ok := retrier.Resolver(naming{manual.NewBuilderWithScheme("live")}).(resolver.AuthorityOverrider)
	if !ok || o.OverrideAuthority(resolver.Target{}) != "acme" {
		t.Errorf("%v; want the authority of the resolver", o)
	}
}

type naming struct{ resolver.Builder }

func (naming) OverrideAuthority(resolver.Target) string { return "acme" }

// received is a connection that has received a service config, through wrap if that is not nil.
func received(t *testing.T, config string, wrap func(resolver.Builder) resolver.Builder) *grpc.ClientConn {
	t.Helper()
	srv := testserver.Start(t)
	m := manual.NewBuilderWithScheme("live")
	m.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		m.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: srv.Addr()}}, ServiceConfig: cc.ParseServiceConfig(config)})
	}
	var builder resolver.Builder = m
	if wrap != nil {
		builder = wrap(m)
	}
	conn, err := grpc.NewClient("live:///orders", slices.Concat(srv.DialOptions(), []grpc.DialOption{grpc.WithResolvers(builder)})...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Invoke(t.Context(), get, nil, nil, grpc.WaitForReady(true)); err == nil {
		t.Fatal("a call without messages succeeds")
	}
	return conn
}

func TestSuccessAllocatesNothingWithADeliveredPolicy(t *testing.T) {
	for name, wrapped := range map[string]bool{"as gRPC reads it": false, "whole": true} {
		retrier := mustNew(t, nil, interceptor.FromServiceConfig())
		var wrap func(resolver.Builder) resolver.Builder
		if wrapped {
			wrap = retrier.Resolver
		}
		conn := received(t, retries("4", ""), wrap)
		if conn.GetMethodConfig(get).RetryPolicy == nil {
			t.Fatal("gRPC has received no policy")
		}
		unary := retrier.Unary()
		call := func() { _ = unary(t.Context(), get, nil, nil, conn, answered) }
		call()
		if n := testing.AllocsPerRun(1000, call); n > slack {
			t.Errorf("%s: a call that succeeds at once allocates %v times; want 0", name, n)
		}
	}
}

// BenchmarkDelivered is what the look at the delivered policy adds to a call that succeeds at once.
func BenchmarkDelivered(b *testing.B) {
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
		"delivered": mustNew(b, nil, interceptor.FromServiceConfig()).Unary(),
		"file":      mustNew(b, mustSet(b, config(plain()))).Unary(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = unary(b.Context(), get, nil, nil, conn, answered)
				}
			})
		})
	}
}
