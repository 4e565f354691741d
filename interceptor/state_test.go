// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestState_BalancesAndRefusals(t *testing.T) {
	specs := map[string]spec.Budget{
		"target":  {Config: budget.ThrottleConfig{MaxTokens: 4, TokenRatio: 1}},
		"process": {Scope: "PROCESS", Config: budget.ThrottleConfig{MaxTokens: 6, TokenRatio: 1}},
		"service": {Scope: "SERVICE", Config: bucketOf(4).Config},
	}
	for name, want := range map[string]interceptor.BudgetState{
		"target":  {Name: "orders", Kind: "throttle", Target: "T", Balance: 0, Capacity: 2, Granted: 1, Refused: 1},
		"process": {Name: "orders", Kind: "throttle", Balance: 0, Capacity: 3, Granted: 2, Refused: 1},
		"service": {Name: "orders", Kind: "bucket", Target: "T", Service: "acme.orders.v1.OrderService", Balance: 1, Capacity: 4, Granted: 3},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, budgeted(specs[name]), func(t *testing.T, s scene) {
				if got := inUse(s.retrier); len(got) != 0 {
					t.Errorf("before any call: %+v", got)
				}
				s.On(get, down())
				_, _ = s.call(t.Context(), get)
				got := inUse(s.retrier)
				if want.Target != "" {
					want.Target = s.conn.Target()
				}
				got[0].Balance = math.Round(10*got[0].Balance) / 10 // time has added a little
				if len(got) != 1 || got[0] != want {
					t.Errorf("%+v; want %+v", got, want)
				}
			})
		})
	}
}

func TestState_OrderOfNames(t *testing.T) {
	c := budgeted(spec.Budget{Scope: "PROCESS", Config: budget.ThrottleConfig{MaxTokens: 4, TokenRatio: 1}})
	other := *c.Methods[1].Retry
	other.Budget = ""
	c.Methods[1].Retry = &other
	play(t, c, func(t *testing.T, s scene) {
		for _, method := range []string{get, create} {
			s.On(method, text("fine"))
			_, _ = s.call(t.Context(), method)
		}
		size := budget.Default().Size
		want := []interceptor.BudgetState{
			{Name: "", Kind: "bucket", Target: s.conn.Target(), Balance: size, Capacity: size},
			{Name: "orders", Kind: "throttle", Balance: 2, Capacity: 2},
		}
		if got := inUse(s.retrier); !slices.Equal(got, want) {
			t.Errorf("before a call needs it: %+v; want %+v", got, want)
		}
		s.On(get, down(), text("fine"))
		_, _ = s.call(t.Context(), get, interceptor.Policy(mine(t)))
		want = slices.Insert(want, 1, interceptor.BudgetState{Name: "mine", Target: s.conn.Target(), Balance: 7, Capacity: 9, Granted: 1})
		if got := inUse(s.retrier); !slices.Equal(got, want) {
			t.Errorf("%+v; want %+v", got, want)
		}
	}, interceptor.WithBudget("mine", forAll(counted{&purse{grants: 9}})))
}

// An option keeps the Retrier, to read it later.
func TestState_HalfMade(t *testing.T) {
	var given *interceptor.Retrier
	play(t, config(plain()), func(t *testing.T, s scene) {
		if given != s.retrier || given.State().Policies == nil {
			t.Error("an option is given another Retrier")
		}
	}, func(r *interceptor.Retrier) error {
		given = r
		if s := r.State(); s.Policies != nil || s.Switches != nil {
			t.Errorf("before it is made: %+v", s)
		}
		return nil
	})
}

// counted is a budget with readings.
type counted struct{ *purse }

func (counted) State(time.Time) budget.State {
	return budget.State{Balance: 7, Capacity: 9}
}

// mine is a policy whose budget is called mine.
func mine(t *testing.T) *policy.Policy {
	t.Helper()
	retry := plain()
	retry.Budget = "mine"
	return mustPolicy(t, spec.Policy{Retry: &retry, Idempotency: "ASSUME"})
}

// A user's budget that has no reading is shown as one without a limit.
func TestState_NoReading(t *testing.T) {
	t.Parallel()
	unread := struct{ budget.Budget }{budget.Unlimited}
	r := mustNew(t, mustSet(t, spec.Config{}), quiet, interceptor.WithBudget("mine", forAll(unread)))
	testkit.NoError(t, r.Unary()(t.Context(), get, nil, nil, nil, answered, interceptor.Policy(mine(t))))
	if b := inUse(r); len(b) != 1 || !math.IsInf(b[0].Balance, 1) || !math.IsInf(b[0].Capacity, 1) {
		t.Errorf("%+v; want one that is infinite", b)
	}
}

// A user's budget whose state is no number is shown as empty, with a warning.
func TestState_NotFinite(t *testing.T) {
	t.Parallel()
	for _, is := range []budget.State{{Balance: math.NaN(), Capacity: 9}, {Balance: 1, Capacity: math.NaN()}, {Balance: math.Inf(1), Capacity: 9}, {Capacity: math.Inf(-1)}} {
		r := testkit.Must(interceptor.New(testkit.Must(compiled.NewSet(spec.Config{}))(t), quiet, interceptor.WithBudget("mine", forAll(stated{budget.Unlimited, is}))))(t)
		testkit.NoError(t, r.Unary()(t.Context(), get, nil, nil, nil, answered, interceptor.Policy(mine(t))))
		s := r.State()
		if b := s.Budgets[0]; b.Balance != 0 || b.Capacity != 0 || !strings.Contains(fmt.Sprint(s.Warnings), "budget: mine: cannot be read, since it has a balance") {
			t.Errorf("%+v, %v", b, s.Warnings)
		}
	}
}

type stated struct {
	budget.Budget

	is budget.State
}

func (s stated) State(time.Time) budget.State { return s.is }

// A reading is consistent: it has one version of the policies, even if they change meanwhile.
func TestState_Reload(t *testing.T) {
	var sets []*policy.Set
	cut := config(plain())
	cut.MaxAttemptsLimit = 2 // of three: a warning
	for _, c := range []spec.Config{cut, {}} {
		set := testkit.Must(compiled.NewSet(c))(t)
		sets = append(sets, set)
	}
	r := testkit.Must(interceptor.New(sets[0], interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
	var reloads sync.WaitGroup
	defer reloads.Wait()
	var over atomic.Bool
	reloads.Go(func() {
		for i := range 3000 {
			_ = r.Reload(sets[i%2])
		}
		over.Store(true)
	})
	for !over.Load() {
		s := r.State()
		if warned := strings.Contains(fmt.Sprint(s.Warnings), "is cut to 2"); warned != (compiled.OfSet(s.Policies).MaxAttemptsLimit == 2) {
			t.Fatalf("warnings %v of another set", s.Warnings)
		}
	}
}
