// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/budget"
)

func refunding(tb testing.TB, c budget.RefundConfig) *budget.Refund {
	tb.Helper()
	b, err := budget.NewRefund(c)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func ExampleRefund() {
	b, err := budget.NewRefund(budget.DefaultRefund())
	if err != nil {
		panic(err)
	}
	granted, now := 0, budget.Now()
	for range 1000 { // an outage: no call succeeds, and no extra attempt helps
		b.Start(now)
		if p, ok := b.Withdraw(now, budget.Charge{Kind: budget.KindFailure}); ok {
			granted++
			b.Settle(now, p, false)
		}
		b.Finish(now, budget.EndFailed)
	}
	fmt.Println(granted)
	// Output: 100
}

func TestRefundPricesAndPaysBack(t *testing.T) {
	t.Parallel()
	b := refunding(t, budget.RefundConfig{Capacity: 20, RetryCost: 5, TimeoutCost: 10, Success: 1.5})
	run(t, b, []row{
		{0, withdraw(timeout), 2, true},
		{0, withdraw(budget.KindHedge), 1, true},
		{0, withdraw(timeout), 1, false},
		{0, withdraw(failure), 0, true},
		{0, withdraw(failure), 0, false},
		{1, settle(2, false), 0, true}, // did not help
		{1, refund(0), 2, true},
		{1, drop(1), 3, true},
		{2, finish(1, budget.EndAtOnce), 3.3, true},
		{2, finish(1, budget.EndSucceeded), 3.3, true}, // its extra attempt has paid for itself
		{2, finish(1, budget.EndFailed), 3.3, true},
		{3, finish(10, budget.EndAtOnce), 4, true}, // full
	})
	if p, ok := b.Withdraw(t0, budget.Charge{Factor: 2.5}); !ok || p.Cost != 12_500 || b.Tokens() != 7.5 {
		t.Errorf("%+v, %v, %v tokens left; want a cost of 12.5 out of 20", p, ok, b.Tokens())
	}
}

func TestRefundRefusesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	_, err := budget.NewRefund(budget.RefundConfig{Capacity: 10, RetryCost: 11, TimeoutCost: 0, Success: math.Inf(1)})
	for _, want := range []string{"RetryCost 11: must be 0.001 to 10", "TimeoutCost 0: must be 0.001 to 10", "Success +Inf: must be 0 to 10"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := budget.NewRefund(budget.RefundConfig{Capacity: 1.0001, RetryCost: 1, TimeoutCost: 1}); err == nil {
		t.Error("a capacity with four decimals is taken")
	}
}
