// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// throttled replaces the budget "one" by one of another kind.
func (s manyTargets) throttled() {
	s.t.Helper()
	retry := plain()
	retry.Backoff = policy.Backoff{Initial: 1, Max: 1, Multiplier: 1, Jitter: policy.JitterNone}
	retry.Budget, retry.WaitForReadyOnRetry = "one", new(false)
	if err := s.retrier.Reload(mustSet(s.t, configOf(retry, budget.ThrottleConfig{MaxTokens: 100, TokenRatio: 1}))); err != nil {
		s.t.Fatal(err)
	}
}

// A reload that changes a budget's kind refills nothing, and takes nothing from targets that had no balance.
func TestReload_DrainsWhatItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.DefaultRatio())
		for _, target := range []int{1, 2} {
			s.call(target, refuse)
		}
		s.throttled()
		for target, want := range map[int]bool{1: true, 3: false} {
			s.call(target, refuse)
			if b := s.of(target); b == nil || (b.Granted == 0) != want {
				t.Errorf("target %d: %+v; want it to begin with nothing: %v", target, b, want)
			}
		}
		time.Sleep(time.Hour)
		for _, target := range []int{2, 4} {
			s.call(target, refuse)
			if b := s.of(target); b == nil || b.Granted == 0 {
				t.Errorf("target %d, an hour later: %+v; want retries", target, b)
			}
		}
	})
}

// If a service config throttles, an earlier call of a method in the policy file has no effect on others.
func TestServiceConfig_BudgetsBesideEachOther(t *testing.T) {
	const throttling = `, "retryThrottling": {"maxTokens": 100, "tokenRatio": 1}`
	for name, first := range map[string]string{"the file's method first": get, "the other first": "/acme.orders.v1.OrderService/FindOrder"} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget = ""
			c := config(retry)
			c.Methods = c.Methods[:1] // get alone
			playLive(t, mustSet(t, c), func(t *testing.T, s scene) {
				s.On("*", down())
				l := dialLive(t, s, retries("4", throttling), s.retrier.Resolver)
				l.conn.Connect()
				synctest.Wait() // the config is there
				_, _ = l.call(t.Context(), first)
				l.wants(t, "by the service config", "/acme.orders.v1.OrderService/FindOrder", 4, policy.ReasonAttemptsExhausted)
				_, _ = l.call(t.Context(), get)
				kinds := map[string]bool{}
				for _, b := range inUse(s.retrier) {
					kinds[b.Kind+" of "+b.Source] = true
				}
				if len(kinds) != 2 || !kinds["ratio of policies"] || !kinds["throttle of service_config"] {
					t.Errorf("%v; want one of the file and one of the service config", kinds)
				}
			})
		})
	}
}
