// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"context"
	"fmt"
	"time"

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
	fleet, err := redisbudget.New(client)
	if err != nil {
		return err
	}
	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithFleet(fleet))
	if err != nil {
		return err
	}
	retrier.Close()
	return nil
}

// Without ContextTimeoutEnabled, requests would not end in time.
func ExampleTimeout() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	_, err := redisbudget.New(client, redisbudget.Timeout(time.Minute))
	fmt.Println(err)
	// Output:
	// redisbudget: New: the client's ContextTimeoutEnabled is false: must be true, so that requests end in time
	// redisbudget: Timeout(1m0s): must be 1ms to 5s
}
