// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/interceptor"
)

func ExampleNew() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true}) // or a cluster
	defer client.Close()
	fleet := redisbudget.New(client)
	defer fleet.Close()
	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithFleet(fleet))
	if err != nil {
		fmt.Println("no retry.yaml here")
		return
	}
	retrier.Close()
	// Output: no retry.yaml here
}

func ExampleWithObserver() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	fleet := redisbudget.New(client,
		redisbudget.WithTimeout(200*time.Millisecond),
		redisbudget.WithLogger(slog.New(slog.DiscardHandler)),
		redisbudget.WithObserver(func(s budget.PoolState) {
			if s.Err != nil {
				fmt.Println("pool", s.Name, "is away:", s.Err)
			}
		}))
	defer fleet.Close()
	fmt.Println(len(fleet.Pools()), "pools, before a Retrier names one")
	// Output: 0 pools, before a Retrier names one
}
