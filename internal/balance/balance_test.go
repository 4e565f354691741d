// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"slices"
	"testing"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/tools/must"
)

func TestName(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range []budget.Config{budget.DefaultRatio(), budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}, budget.ConcurrentConfig{Percent: 20}} {
		if kind := must.Get(New(c))(t).Kind(); kind != Name(c) {
			t.Errorf("the budget of %T is a %s; want %s", c, kind, Name(c))
		}
		names = append(names, Name(c))
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("configs of %q; want %q", names, Names())
	}
	if c := budget.Default(); must.Get(New(c))(t).Kind() != Name(c) {
		t.Errorf("the default budget is a %s", Name(c))
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	empty := Empty()
	for range 1000 {
		empty.Start(0)
		empty.Finish(0, budget.EventCallSucceeded)
		empty.Settle(0, budget.Permit{}, true)
		if _, granted := empty.Withdraw(0, budget.Charge{}); granted {
			t.Fatal("granted")
		}
	}
	if got := empty.Balance(0) + empty.Capacity(0); got != 0 {
		t.Errorf("balance and capacity %v; want 0", got)
	}
	if got := empty.Denied(); got != 1000 {
		t.Errorf("denied %d; want 1000", got)
	}
}
