// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// At 3 a.m., an operator turns all retries off.
func ExampleRetrier_SetMode() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		panic(err)
	}
	if err := retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff, By: "alice"}); err != nil {
		panic(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = retrier.Do(ctx, getOrder, func(context.Context) error { // or a call of a connection with retrier.DialOptions
		return status.Error(codes.Unavailable, "restarting")
	})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println(status.Code(err), "attempts:", e.Attempts, "reason:", e.Reason)
	}
	// Output: Unavailable attempts: 1 reason: mode_off
}

// A unary call whose context has no deadline ends in time, also if its server hangs. The key defaultTimeout of a policy file wins.
func ExampleWithDefaultTimeout() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{}, interceptor.WithDefaultTimeout(20*time.Millisecond))
	if err != nil {
		panic(err)
	}
	err = retrier.Do(context.Background(), getOrder, func(ctx context.Context) error { // or a call of a connection with retrier.DialOptions
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	})
	fmt.Println(status.Code(err))
	// Output: DeadlineExceeded
}

// All streams together keep at most 1 MiB for another attempt. Beyond that, they are committed.
func ExampleWithMaxReplayBytes() {
	_, err := interceptor.Default(interceptor.DefaultPolicy{}, interceptor.WithMaxReplayBytes(1<<20))
	fmt.Println(err)
	// Output: <nil>
}
