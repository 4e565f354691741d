// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestServiceConfigResolver_RefusedByGRPC(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("3", ""), s.retrier.Resolver)
		l.wants(t, "before", get, 3, policy.ReasonAttemptsExhausted)
		l.deliver(`{"methodConfig": 5}`)
		l.wants(t, "after", get, 3, policy.ReasonAttemptsExhausted)
		if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], "service config of live:///orders: is refused by gRPC, and not followed: json:") {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestServiceConfigResolver_Hedging(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", testserver.OK().Delay(time.Second))
		hedged := entryOf(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"], "budget": "NONE"}`, "")
		l := dialLive(t, s, hedged, s.retrier.Resolver)
		if _, err := l.call(t.Context(), get); err != nil { // the first, which begins before the resolver answers
			t.Fatal(err)
		}
		knowLatency(s.retrier, l.conn)
		s.Reset()
		if _, err := l.call(t.Context(), get); err != nil || s.waits() != "[200ms 200ms]" {
			t.Errorf("%v, hedges after %s; want two, each after 200 ms", err, s.waits())
		}
	})
}

func TestServiceConfigResolver_OwnKeys(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
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

func TestServiceConfigResolver_RetryThrottling(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("2", `, "retryThrottling": {"maxTokens": 4, "tokenRatio": 0.5}`), s.retrier.Resolver)
		const other = "/acme.Other/Get" // has no policy, but counts
		l.wants(t, "4 tokens, then 3", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "2 tokens, after that failure", get, 1, policy.ReasonBudgetExhausted)
		s.On("*", testserver.OK())
		for range 6 {
			if _, err := l.call(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		s.On("*", down())
		l.wants(t, "4 tokens again", get, 2, policy.ReasonAttemptsExhausted)
		l.deliver(retries("2", `, "retryThrottling": {"maxTokens": 8, "tokenRatio": 0.5}`))
		l.wants(t, "2 tokens of 4 are 4 of 8: a new config refills nothing", get, 1, policy.ReasonBudgetExhausted)
		s.On("*", testserver.OK())
		for range 20 {
			_, _ = l.call(t.Context(), other)
		}
		s.On("*", down())
		l.wants(t, "8 tokens of 8", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "6 tokens", get, 2, policy.ReasonAttemptsExhausted)
		l.wants(t, "4 tokens", get, 1, policy.ReasonBudgetExhausted)
		l.deliver(retries("2", ""))
		l.wants(t, "a budget of another kind begins with nothing", get, 1, policy.ReasonBudgetExhausted)
	})
}

// A pool that the program doesn't have must not keep the previous settings in use.
func TestServiceConfigResolver_FleetIsMissing(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		budgeted := func(ratio string) string {
			return strings.Replace(retries("2", `, "budgets": [{"name": "orders", "ratio": {`+ratio+`}}]`), `"maxAttempts"`, `"budget": "orders", "maxAttempts"`, 1)
		}
		l := dialLive(t, s, budgeted(`"percent": 1000`), s.retrier.Resolver)
		l.wants(t, "without a pool", get, 2, policy.ReasonAttemptsExhausted)
		l.deliver(budgeted(`"percent": 1000, "fleet": {"name": "orders", "perSecond": 1}`))
		for range 2 {
			l.wants(t, "with a pool", get, 1, policy.ReasonBudgetExhausted)
		}
		if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], "budgets: orders: cannot be used, so its calls get no other attempt: ") {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestServiceConfigResolver_RefusedByUs(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		lax := strings.Replace(retries("2", `, "retryThrottling": {"maxTokens": 1.5, "tokenRatio": 1}`), `"name"`, `"owner": "us", "timeout": "7s", "timeout": "9s", "name"`, 1)
		l := dialLive(t, s, lax, s.retrier.Resolver)
		for range 3 {
			l.wants(t, "a call", get, 2, policy.ReasonAttemptsExhausted)
			l.deliver(lax)
		}
		const where = "service config of live:///orders:"
		for i, want := range []string{
			where + " has errors in keys that gRPC ignores; only its retry policies",
			where + "1:20: methodConfig[0].owner: unknown key; must be",
			where + "1:52: methodConfig[0].timeout: is given twice, first at line 1, column 35",
			where + "2:104: retryThrottling.maxTokens: 1.5: must be a whole number",
		} {
			if len(s.warnings) != 4 || !strings.HasPrefix(s.warnings[i], want) {
				t.Fatalf("warned:\n%s\nwant four, number %d with %s", strings.Join(s.warnings, "\n"), i+1, want)
			}
		}
		if all := s.retrier.State().Warnings; len(all) != 4 {
			t.Errorf("Warnings() = %v", all)
		}
	})
}

func TestServiceConfigResolver_WithoutTheOption(t *testing.T) {
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""), s.retrier.Resolver)
		l.wants(t, "a call", get, 1, policy.ReasonNonRetryable)
	})
}

func TestServiceConfigResolver_Authority(t *testing.T) {
	t.Parallel()
	retrier := mustNew(t, nil, interceptor.WithServiceConfig())
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
