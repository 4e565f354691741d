// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Two Retriers of a process share a budget: their clients call the same servers.
func ExampleWithBudget() {
	shared, err := budget.New(budget.Default())
	if err != nil {
		panic(err)
	}
	for range 2 {
		_, err := interceptor.Default(interceptor.DefaultPolicy{}, interceptor.WithBudget("", func(string) budget.Budget { return shared }))
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
}

// Each target has a budget of its own, which no other Retrier shares.
func ExampleWithBudget_perTarget() {
	perTarget := func(string) budget.Budget {
		config := budget.Default()
		config.Size = 20
		b, err := budget.New(config)
		if err != nil {
			return nil // the target's calls get no extra attempt
		}
		return b
	}
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, interceptor.WithBudget("", perTarget))
	fmt.Println(err)
	// Output: <nil>
}

// State has the balance of each budget, and what it has granted and refused.
func ExampleRetrier_State() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent:  []string{getOrder},
		RetryPolicy: policy.RetryPolicy{InitialBackoff: time.Millisecond},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = retrier.Do(ctx, getOrder, func(context.Context) error { // or a call of a connection with retrier.DialOptions
		return status.Error(codes.Unavailable, "restarting")
	})
	for _, b := range retrier.State().Budgets {
		fmt.Printf("balance %.0f, %d granted, %d refused\n", b.Balance, b.Granted, b.Refused)
	}
	// Output: balance 2, 2 granted, 0 refused
}
