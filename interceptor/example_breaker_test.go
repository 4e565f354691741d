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
)

// tripped is a breaker whose circuit opens for good at the first failure. One for real use is in examples/breaker.
type tripped bool

func (t *tripped) Open(context.Context, int) error {
	if *t {
		return errors.New("the service is down")
	}
	return nil
}

func (t *tripped) Allow(ctx context.Context, attempt int) (done func(error), err error) {
	if err := t.Open(ctx, attempt); err != nil {
		return nil, err
	}
	return func(err error) { *t = tripped(status.Code(err) == codes.Unavailable) }, nil
}

// A breaker refuses a retry, and then the next call.
func ExampleWithBreaker() {
	const getOrder = "/acme.orders.v1.OrderService/GetOrder"
	breakers := map[string]*tripped{} // real ones need a lock
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}},
		interceptor.WithBreaker(func(target, _ string) interceptor.Gate {
			if breakers[target] == nil {
				breakers[target] = new(tripped)
			}
			return breakers[target]
		}))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		err := retrier.Do(ctx, getOrder, func(context.Context) error { // or a call of a connection with retrier.DialOptions
			return status.Error(codes.Unavailable, "restarting")
		})
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			fmt.Printf("attempts: %d, %s: %s\n", e.Attempts, e.Reason, status.Convert(err).Message())
		}
	}
	// Output:
	// attempts: 1, breaker_open: restarting
	// attempts: 0, breaker_open: circuit breaker: the service is down
}
