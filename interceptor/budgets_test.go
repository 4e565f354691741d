// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const other = "/acme.stock.v1.StockService/GetStock"

// sharing has one budget of two extra attempts, over two services.
func sharing(scope policy.Scope) policy.Config {
	retry := plain()
	retry.MaxAttempts = 2
	retry.Budget = "two"
	c := config(retry)
	c.Methods = append(c.Methods, policy.MethodConfig{
		Names: []policy.Name{{Service: "acme.stock.v1.StockService", Method: "GetStock"}},
		Spec:  policy.Spec{Retry: &retry},
	})
	c.Budgets = []policy.BudgetSpec{{
		Name: "two", Scope: scope,
		Ratio: &policy.RatioSpec{Percent: 0.0001, MinPerSecond: 0.2, Window: 10_000 * ms, TimeoutCost: 5, TimeoutBonus: 2.5},
	}}
	return c
}

// TestScopeIsWhoSharesABalance lets calls of two services fail on two connections to each of two
// servers, one after the other. A balance of its own allows two extra attempts.
func TestScopeIsWhoSharesABalance(t *testing.T) {
	t.Parallel()
	for scope, want := range map[policy.Scope]int{
		policy.ScopeProcess: 2,
		policy.ScopeTarget:  2 * 2,
		policy.ScopeService: 2 * 2 * 2,
	} {
		t.Run(scope.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				retrier := mustNew(t, mustSet(t, sharing(scope)), quiet)
				calls, attempts := 0, 0
				for range 2 {
					srv := testserver.Start(t)
					srv.Default(down())
					for range 2 {
						s := scene{conn: srv.Dial(t, retrier.DialOptions()...)}
						for range 3 {
							_, _ = s.call(t.Context(), get)
							_, _ = s.call(t.Context(), other)
							calls += 2
						}
					}
					attempts += srv.Count("*")
				}
				if attempts-calls != want {
					t.Errorf("%d extra attempts of %d calls; want %d", attempts-calls, calls, want)
				}
			})
		})
	}
}

func TestAPolicyThatNamesNoBudgetGetsTheDefaultOne(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, down())
		for range 100 {
			_, _ = s.call(t.Context(), get)
		}
		if extra := s.Count(get) - 100; extra != 20 {
			t.Errorf("%d extra attempts of 100 calls; want a reserve of 10 and 10 %%", extra)
		}
	})
}

func TestTheDefaultBudgetIsTheSameInBothPackages(t *testing.T) {
	t.Parallel()
	if a, b := budget.RatioConfig(policy.DefaultRatio()), budget.DefaultRatio(); a != b {
		t.Errorf("policy says %+v, budget says %+v", a, b)
	}
}

// gRFC A6 with maxTokens 4: each failure takes one; extra attempts while more than two are left.
func TestRetryThrottlingIsTheBudgetOfPoliciesThatNameNone(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	c := config(retry)
	c.Throttling = &policy.ThrottleSpec{MaxTokens: 4, TokenRatio: 0.5}
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down())
		_, err := s.call(t.Context(), get) // 4 → 3: retry; 3 → 2: no
		if s.Count(get) != 2 || reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%d attempts, %s; want 2, budget_exhausted", s.Count(get), reasonOf(err))
		}
		s.On(get, testserver.OK())
		for range 3 { // 2 → 3.5, by a method without retries of its own too
			_, _ = s.call(t.Context(), other)
		}
		s.Reset()
		s.On(get, down())
		_, _ = s.call(t.Context(), get) // 3.5 → 2.5: retry; 2.5 → 1.5: no
		if s.Count(get) != 2 {
			t.Errorf("%d attempts; want 2", s.Count(get))
		}
	})
}

func TestAStopCountsAsAFailureForTheThrottleAfterAnyCode(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	c := config(retry)
	c.Throttling = &policy.ThrottleSpec{MaxTokens: 4, TokenRatio: 0.5}
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.NotFound).Pushback("-1").Times(2), down()) // 4 → 2
		for range 2 {
			_, _ = s.call(t.Context(), get)
		}
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%s; want budget_exhausted", reasonOf(err))
		}
	})
}

func TestABudgetGivenInCodeIsSharedByWhoeverHasIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two, err := budget.NewRatio(budget.RatioConfig{Percent: 0.0001, MinPerSecond: 0.2, Window: 10_000 * ms, TimeoutCost: 5})
		if err != nil {
			t.Fatal(err)
		}
		srv := testserver.Start(t)
		srv.Default(down())
		for range 2 {
			retrier := mustNew(t, mustSet(t, sharing(policy.ScopeService)), quiet, interceptor.WithBudget("two", two))
			s := scene{conn: srv.Dial(t, retrier.DialOptions()...)}
			for range 2 {
				_, _ = s.call(t.Context(), get)
			}
		}
		if extra := srv.Count("*") - 4; extra != 2 || two.Denied() != 2 {
			t.Errorf("%d extra attempts, %d denied; want 2 and 2", extra, two.Denied())
		}
	})
}

func TestACallsPolicyThatNamesAnUnknownBudgetIsReportedAndPaysFromTheDefault(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		retry := plain()
		retry.Budget = "oders"
		p := mustPolicy(t, policy.Spec{Retry: &retry, Idempotency: policy.IdempotencyAssume})
		for range 10 {
			_, _ = s.call(t.Context(), get, interceptor.WithPolicy(p))
		}
		if extra := s.Count(get) - 10; extra != 11 {
			t.Errorf("%d extra attempts; want the default budget's 11", extra)
		}
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "oders") {
			t.Errorf("warnings %q; want one that names the budget", s.warnings)
		}
	})
}

func TestManyCallsShareOneBudgetExactly(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.Default(down())
		const calls = 1000
		done := make(chan struct{})
		for range calls {
			go func() {
				_, _ = s.call(t.Context(), get)
				done <- struct{}{}
			}()
		}
		for range calls {
			<-done
		}
		if extra := s.Count(get) - calls; extra != 110 {
			t.Errorf("%d extra attempts of %d calls at once; want 110", extra, calls)
		}
	})
}

func ExampleWithBudget() {
	// One budget for two Retriers of a process: their clients call the same fleet.
	shared, err := budget.NewRatio(budget.DefaultRatio())
	if err != nil {
		fmt.Println(err)
		return
	}
	set, _ := policy.NewSet(policy.Config{})
	for range 2 {
		if _, err := interceptor.New(set, interceptor.WithBudget("", shared)); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
}
