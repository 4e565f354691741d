// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const other = "/acme.stock.v1.StockService/GetStock"

// two is a budget of two extra attempts, which nothing fills.
var two = budget.BucketConfig{Size: 2, PerSuccess: 0, SlowCost: 1, Refund: 0}

// sharing has one budget of two extra attempts, over two services.
func sharing(scope string) spec.Config {
	retry := plain()
	retry.MaxAttempts = 2
	retry.Budget = "two"
	c := config(retry)
	c.Methods = append(c.Methods, spec.MethodConfig{
		Names:  []string{"/acme.stock.v1.StockService/GetStock"},
		Policy: spec.Policy{Retry: &retry},
	})
	c.Budgets = []spec.Budget{{
		Name: "two", Scope: scope,
		Config: two,
	}}
	return c
}

// TestBudgetScope lets calls of two services fail on two connections to each of two
// servers, one after the other. Each separate balance allows two extra attempts.
func TestBudgetScope(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]int{
		"PROCESS": 2,
		"TARGET":  2 * 2,
		"SERVICE": 2 * 2 * 2,
	} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				retrier := mustNew(t, mustSet(t, sharing(scope)), quiet)
				calls, attempts := 0, 0
				for range 2 {
					srv := testserver.Start(t)
					srv.On("*", down())
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

func TestBudgetDefault(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, down())
		for range 100 {
			_, _ = s.call(t.Context(), get)
		}
		if extra, size := s.Count(get)-100, budget.Default().Size; extra != int(size) {
			t.Errorf("%d extra attempts of 100 calls; want those of a full bucket, %v", extra, size)
		}
	})
}

// gRFC A6 with maxTokens 4: each failure takes one; extra attempts while more than two are left.
func TestBudgetRetryThrottling(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	c := config(retry)
	c.RetryThrottling = &budget.ThrottleConfig{MaxTokens: 4, TokenRatio: 0.5}
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

func TestBudget_GivenInCode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := testkit.Must(budget.New(two))(t)
		var last interceptor.BudgetState
		srv := testserver.Start(t)
		srv.On("*", down())
		for range 2 {
			retrier := mustNew(t, mustSet(t, sharing("SERVICE")), quiet, interceptor.WithBudget("two", forAll(shared)))
			s := scene{conn: srv.Dial(t, retrier.DialOptions()...)}
			for range 2 {
				_, _ = s.call(t.Context(), get)
			}
			last = inUse(retrier)[0]
		}
		if extra := srv.Count("*") - 4; extra != 2 || last.Refused != 0 || last.Granted != 0 || last.Balance >= 0.1 || last.Capacity != 2 {
			t.Errorf("%d extra attempts, of the second Retrier %+v; want 2, those of the first", extra, last)
		}
	})
}

func TestBudget_Unknown(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		retry := plain()
		retry.Budget = "oders"
		p := mustPolicy(t, spec.Policy{Retry: &retry, Idempotency: "ASSUME"})
		for range 10 {
			_, _ = s.call(t.Context(), get, interceptor.Policy(p))
		}
		if extra, size := s.Count(get)-10, budget.Default().Size; extra != int(size) {
			t.Errorf("%d extra attempts; want the default budget's %v", extra, size)
		}
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "oders") {
			t.Errorf("warnings %q; want one that names the budget", s.warnings)
		}
	})
}

// opaqueOption hides its embedded option. The Retrier warns of it while it reads a call's options: after it has
// found the policy, and before it looks for the budget.
type (
	opaqueOption struct{ *plainOption }
	plainOption  struct{ grpc.EmptyCallOption }
)

// A balance that a call makes during a reload has the new settings.
func TestBudget_MadeDuringReload(t *testing.T) {
	t.Parallel()
	perService := bucketOf(50)
	perService.Scope = "SERVICE"
	for name, row := range map[string]struct {
		after       spec.Budget
		least, most float64 // of the balance
	}{
		"more":          {bucketOf(50), 50, 50.1},
		"another kind":  {spec.Budget{Config: budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1}}, 5, 5}, // in the place of none: the call is the first
		"another scope": {perService, 50, 50.1},
	} {
		t.Run(name, func(t *testing.T) {
			var reload func()
			play(t, budgeted(bucketOf(10)), func(t *testing.T, s scene) {
				reload = func() { s.reload(t, budgeted(row.after)) }
				_, _ = s.call(t.Context(), get, opaqueOption{new(plainOption)})
				b := inUse(s.retrier)
				if len(b) != 1 || b[0].Balance < row.least || b[0].Balance > row.most {
					t.Errorf("budgets %+v; want one balance of %v to %v", b, row.least, row.most)
				}
				_, _ = s.call(t.Context(), get)
				if again := inUse(s.retrier); len(again) != 1 {
					t.Errorf("budgets %+v after another call; want one", again)
				}
			}, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
				if d.Field == "call option" {
					reload()
				}
			}}))
		})
	}
}
