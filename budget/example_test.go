// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"

	"github.com/stagger-go/stagger/budget"
)

// A hundred calls meet an outage. Each would like one more attempt; a tenth of them may, and the
// reserve of 0.8 a second over five seconds lets four more.
func ExampleNewRatio() {
	b, err := budget.NewRatio(budget.DefaultRatio())
	if err != nil {
		fmt.Println(err)
		return
	}
	now := budget.Now()
	extra := 0
	for range 100 {
		b.Start(now)
		b.Fail(now)
		if _, ok := b.Withdraw(now, budget.Charge{Kind: budget.KindFailure}); ok {
			extra++ // sent, and failed as well
		}
		b.Finish(now, budget.EndFailed)
	}
	fmt.Println(extra, "extra attempts,", b.Denied(), "denied")
	// Output: 14 extra attempts, 86 denied
}

// One backend of four is broken, and an extra attempt goes to another: it succeeds, pays for itself,
// and the budget never runs dry.
func ExampleRatio_Settle() {
	b, err := budget.NewRatio(budget.DefaultRatio())
	if err != nil {
		fmt.Println(err)
		return
	}
	now := budget.Now()
	for i := range 1000 {
		b.Start(now)
		if i%4 == 0 {
			if p, ok := b.Withdraw(now, budget.Charge{Kind: budget.KindFailure}); ok {
				b.Settle(now, p, true)
			}
		}
		b.Finish(now, budget.EndAtOnce)
	}
	fmt.Println(b.Denied(), "denied, balance", b.Balance(now))
	// Output: 0 denied, balance 104
}

// With ten tokens extra attempts stop at five. One that succeeds adds a tenth.
func ExampleNewThrottle() {
	b, err := budget.NewThrottle(budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := budget.Now()
	for range 5 {
		b.Fail(now)
	}
	_, ok := b.Withdraw(now, budget.Charge{Kind: budget.KindFailure})
	fmt.Println(b.Tokens(), ok)

	b.Finish(now, budget.EndAtOnce)
	_, ok = b.Withdraw(now, budget.Charge{Kind: budget.KindFailure})
	fmt.Println(b.Tokens(), ok)
	// Output:
	// 5 false
	// 5.1 true
}

// The error says what would be right, for every field.
func ExampleNewRatio_badConfig() {
	_, err := budget.NewRatio(budget.RatioConfig{Percent: 10, TimeoutCost: 0.5})
	fmt.Println(err)
	// Output:
	// budget: Window 0s: must be 1s to 60s
	// budget: TimeoutCost 0.5: must be 1 to 1000
}

func ExampleNew() {
	for _, config := range []budget.Config{budget.DefaultRatio(), budget.DefaultConcurrent(), budget.DefaultRefund()} {
		b, err := budget.New(config)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(config.Name(), b.Balance(budget.Now()))
	}
	// Output:
	// ratio 4
	// concurrent 3
	// refund 100
}
