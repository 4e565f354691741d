// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// budgeted has one budget, orders, for all retries.
func budgeted(b spec.Budget) spec.Config {
	retry := plain()
	retry.Budget, b.Name = "orders", "orders"
	c := config(retry)
	c.Budgets = []spec.Budget{b}
	return c
}

// bucketOf is a budget of n retries, which hardly anything fills.
func bucketOf(n float64) spec.Budget {
	b := budget.Default()
	b.Size, b.PerSuccess = n, 0
	return spec.Budget{Config: b}
}

// answers makes a call that is answered NOT_FOUND: not everything fails.
func (s scene) answers(t *testing.T) {
	t.Helper()
	s.On(get, testserver.Fail(codes.NotFound))
	_, _ = s.call(t.Context(), get)
	s.On(get, down())
}

// exhaust makes calls until the budget refuses, while others are answered.
func (s scene) exhaust(t *testing.T) {
	t.Helper()
	s.On(get, down())
	for range 100 {
		_, err := s.call(t.Context(), get)
		s.answers(t)
		if reasonOf(err) == policy.ReasonBudgetExhausted {
			return
		}
	}
	t.Fatal("the budget never refuses")
}

func (s scene) reload(t *testing.T, c spec.Config) {
	t.Helper()
	if err := s.retrier.Reload(mustSet(t, c)); err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		time.AfterFunc(150*ms, func() {
			once := plain()
			once.MaxAttempts = 2
			s.reload(t, config(once))
		})
		if _, err := s.call(t.Context(), get); err == nil || s.Count(get) != 4 {
			t.Errorf("a call that had begun: %v after %d attempts; want 4", err, s.Count(get))
		}
		s.Reset()
		if _, err := s.call(t.Context(), get); err == nil || s.Count(get) != 2 {
			t.Errorf("a call after the reload: %v after %d attempts; want 2", err, s.Count(get))
		}
	})
}

// A reload scales a budget's balance. A budget of another name, kind or scope starts full.
func TestReload_Budget(t *testing.T) {
	tokens := spec.Budget{Config: budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}}
	perService := bucketOf(50)
	perService.Scope = "SERVICE"
	renamed := budgeted(bucketOf(10))
	renamed.Budgets[0].Name = "others"
	renamed.Methods[0].Retry.Budget = "others"
	for name, row := range map[string]struct {
		after spec.Config
		full  bool
	}{
		"the same":      {budgeted(bucketOf(10)), false},
		"more":          {budgeted(bucketOf(50)), false},
		"another kind":  {budgeted(tokens), true},
		"another scope": {budgeted(perService), true},
		"another name":  {renamed, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, budgeted(bucketOf(10)), func(t *testing.T, s scene) {
				s.exhaust(t)
				s.reload(t, row.after)
				s.Reset()
				want, reason := 1, policy.ReasonBudgetExhausted
				if row.full {
					want, reason = 4, policy.ReasonAttemptsExhausted
				}
				if _, err := s.call(t.Context(), get); reasonOf(err) != reason || s.Count(get) != want {
					t.Errorf("%v (%s) after %d attempts; want %d", err, reasonOf(err), s.Count(get), want)
				}
			})
		})
	}
}

// A budget that gets another size keeps the part that it had.
func TestReload_ScalesBalance(t *testing.T) {
	play(t, budgeted(bucketOf(20)), func(t *testing.T, s scene) {
		s.On("*", down())
		_, _ = s.call(t.Context(), get, interceptor.MaxAttempts(3))
		_, _ = s.call(t.Context(), get)
		s.reload(t, budgeted(bucketOf(40)))
		balances := inUse(s.retrier)
		if len(balances) != 1 || balances[0].Balance < 30 || balances[0].Balance > 30.2 {
			t.Errorf("%+v; want 30 of 40, as 15 of 20", balances)
		}
	})
}

func TestReload_BudgetGone(t *testing.T) {
	play(t, budgeted(bucketOf(10)), func(t *testing.T, s scene) {
		s.exhaust(t)
		s.reload(t, config(plain()))
		s.reload(t, budgeted(bucketOf(10)))
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestReload_Event(t *testing.T) {
	var told []string
	play(t, config(plain()), func(t *testing.T, s scene) {
		time.Sleep(time.Minute)
		once := plain()
		once.MaxAttempts = 2
		c := config(once)
		c.Methods, c.Mode = c.Methods[:1], "OBSERVE"
		s.reload(t, c)
		if got := strings.Join(told, "; "); got != "[acme.orders.v1.OrderService removed maxAttempts of GetOrder 4 → 2 mode ENFORCE → OBSERVE] <nil>" {
			t.Error(got)
		}
		got := s.retrier.State()
		if p := got.Policies.Lookup(get); p == nil || compiled.Of(p).Retry.MaxAttempts != 2 {
			t.Errorf("%+v", compiled.OfSet(got.Policies).Config)
		}
		if compiled.OfSet(got.Policies).MaxAttemptsLimit != defaults.MaxAttempts ||
			compiled.OfSet(got.Policies).MaxWaiting != defaults.MaxWaiting ||
			compiled.OfSet(got.Policies).Mode != "OBSERVE" || len(got.Switches) != 1 {
			t.Errorf("%+v", got)
		}
	}, interceptor.WithObserver(interceptor.Observer{Reload: func(_ *policy.Set, changes []string, err error) {
		told = append(told, fmt.Sprint(changes, " ", err))
	}}))
}

// A reload keeps nothing of the policies before, though no further calls come for their methods.
func TestReload_ForgetsPolicies(t *testing.T) {
	set := mustSet(t, config(plain()))
	before := weak.Make(set)
	r := mustNew(t, set, quiet)
	testkit.NoError(t, r.Unary()(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, nil, fine))
	testkit.NoError(t, r.Reload(mustSet(t, spec.Config{})))
	runtime.GC()
	if before.Value() != nil {
		t.Error("the policies before are still in memory")
	}
}

func TestReload_Refused(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		if s.retrier.Reload(nil) == nil {
			t.Error("nil is taken for a set")
		}
		s.On(get, down())
		if _, err := s.call(t.Context(), get); err == nil || s.Count(get) != 4 {
			t.Errorf("%v after %d attempts", err, s.Count(get))
		}
	})
}
