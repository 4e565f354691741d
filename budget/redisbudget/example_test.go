// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/interceptor"
)

func ExampleNew() {
	if err := run(context.Background()); err != nil {
		fmt.Println("no retry.yaml here")
	}
	// Output: no retry.yaml here
}

func run(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true}) // or a cluster
	defer client.Close()
	orders, err := redisbudget.New(client, redisbudget.Config{
		Pool:      "orders",
		PerSecond: 100, // extra attempts a second to each target for all processes, beside those that each one's own calls earn
	})
	if err != nil {
		return err
	}
	defer orders.Close()
	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithBudget("orders", orders.Budget))
	if err != nil {
		return err
	}
	retrier.Close()
	return nil
}

// Without ContextTimeoutEnabled, requests would not end in time.
func ExampleNew_wrong() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	_, err := redisbudget.New(client, redisbudget.Config{Pool: "orders"})
	fmt.Println(err)
	// Output:
	// redisbudget: New: the client's ContextTimeoutEnabled is false: must be true, so that requests end in time
	// redisbudget: PerSecond 0: must be 0.0001 to 1000000
}
