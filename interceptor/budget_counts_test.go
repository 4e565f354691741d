// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// granted returns the granted withdrawals of all targets, and of one.
func (s manyTargets) granted(target int) (all, one uint64) {
	name := fmt.Sprintf("passthrough:///target-%d", target)
	for _, c := range s.retrier.State().Budgets {
		all += c.Granted
		if c.Target == name {
			one = c.Granted
		}
	}
	return all, one
}

// Counts outlive their balance, and continue if the target comes back.
func TestBudgetCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		s.retrier.SetMostBalances(3)
		s.call(1, refuse)
		_, before := s.granted(1)
		time.Sleep(10 * time.Minute)
		s.pass(20, 6*time.Second)
		if b := s.of(1); b != nil || before == 0 {
			t.Fatalf("%+v, %d granted; want a balance that has granted, and is dropped", b, before)
		}
		if all, one := s.granted(1); one != before || all != before {
			t.Errorf("%d granted, %d in all, once the balance is gone; want %d", one, all, before)
		}
		s.call(1, refuse)
		if _, one := s.granted(1); one != 2*before {
			t.Errorf("%d granted after the target came back; want %d", one, 2*before)
		}
	})
}

// Counts of many targets are bounded, and their sum never falls.
func TestBudgetCounts_ManyTargets(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newManyTargets(t, budget.Default())
		most, last, calls := 0, uint64(0), 0
		for i := range 3000 {
			s.call(i, refuse)
			calls++
			time.Sleep(10 * ms)
			if i%100 != 0 {
				continue
			}
			all, _ := s.granted(0)
			counts := slices.DeleteFunc(s.retrier.State().Budgets, func(b interceptor.BudgetState) bool { return b.Granted == 0 })
			most = max(most, len(counts))
			if all < last || all != uint64(3*calls) {
				t.Fatalf("%d granted after %d calls, %d before; want 3 each", all, calls, last)
			}
			last = all
		}
		if most > 1001 || most < 1000 {
			t.Errorf("%d counts; want a thousand, and one of the others", most)
		}
	})
}

// Services that a proxy's callers make up have balances of their own, as many as the table keeps.
func TestBudgetScopeService_MadeUp(t *testing.T) {
	retry := plain()
	retry.Budget = "orders"
	c := budgeted(spec.Budget{Scope: "SERVICE", Config: budget.Default()})
	c.Methods = append(c.Methods, spec.MethodConfig{Names: []string{"/"}, Policy: spec.Policy{Retry: &retry}})
	play(t, c, func(t *testing.T, s scene) {
		s.On("*", text("fine"))
		s.retrier.SetMostBalances(50)
		services := 0
		for i := range 300 {
			_, _ = s.call(t.Context(), fmt.Sprintf("/made-up-%d/Get", i))
			services = max(services, len(inUse(s.retrier)))
		}
		if services != 50 {
			t.Errorf("%d balances; want 50", services)
		}
	})
}

// An attempt that runs while a reload drops its balance counts when it ends.
func TestBudgetCounts_ReloadOfScope(t *testing.T) {
	play(t, budgeted(bucketOf(10)), func(t *testing.T, s scene) {
		s.On(get, down(), text("a").Delay(time.Second))
		ended := make(chan error, 1)
		go func() {
			_, err := s.call(t.Context(), get)
			ended <- err
		}()
		time.Sleep(500 * ms) // the second attempt runs
		perService := bucketOf(10)
		perService.Scope = "SERVICE"
		s.reload(t, budgeted(perService))
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		granted := uint64(0)
		for _, b := range s.retrier.State().Budgets {
			granted += b.Granted
		}
		if granted != 1 {
			t.Errorf("%d granted; want 1", granted)
		}
	})
}
