// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func TestBalancesAndDenialsCanBeRead(t *testing.T) {
	ours := &purse{grants: 1}
	specs := map[string]policy.BudgetSpec{
		"target":  {Throttle: &policy.ThrottleSpec{MaxTokens: 4, TokenRatio: 1}},
		"process": {Scope: policy.PerProcess, Refund: &policy.RefundSpec{Capacity: 10, RetryCost: 5, TimeoutCost: 5}},
		"service": {Scope: policy.PerService, Concurrent: &policy.ConcurrentSpec{Percent: 100, Min: 2}},
	}
	for name, want := range map[string]interceptor.BudgetState{
		"target":  {Name: "orders", Target: "T", Balance: 0, Denied: 1},
		"process": {Name: "orders", Balance: 0, Denied: 1},
		"service": {Name: "orders", Target: "T", Service: "acme.orders.v1.OrderService", Balance: 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, budgeted(specs[name]), func(t *testing.T, s scene) {
				if got := s.retrier.Budgets(); len(got) != 0 {
					t.Errorf("before any call: %+v", got)
				}
				s.On(get, down())
				_, _ = s.call(t.Context(), get)
				got := s.retrier.Budgets()
				if want.Target != "" {
					want.Target = s.conn.Target()
				}
				if len(got) != 1 || got[0] != want {
					t.Errorf("%+v; want %+v", got, want)
				}
			})
		})
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		if got := s.retrier.Budgets(); len(got) != 1 || got[0].Name != "mine" || got[0].Balance != 7 || !strings.HasPrefix(ours.String(), "asked []") {
			t.Errorf("%+v", got)
		}
	}, interceptor.WithBudget("mine", counted{ours}))
}

// counted is a budget with a balance to read.
type counted struct{ *purse }

func (counted) Balance(time.Duration) float64 { return 7 }
func (counted) Denied() uint64                { return 3 }
