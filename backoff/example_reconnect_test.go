// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/backoff"
)

// keepConnected runs connect again whenever it returns, until ctx is done. connect returns an error when the connection fails or is lost.
func keepConnected(ctx context.Context, b backoff.Config, connect func(context.Context) error) error {
	retries, delay := 0, time.Duration(0)
	for {
		began := time.Now()
		err := connect(ctx)
		if time.Since(began) > b.Max { // the connection was good for a while
			retries, delay = 0, 0
		}
		delay = b.Delay(retries, delay, rand.Float64())
		retries++
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(delay):
		}
	}
}

// Reconnect after each failure, until the context is done.
func Example_reconnect() {
	b := backoff.Config{Initial: time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: backoff.JitterEqual}
	ctx, stop := context.WithCancel(context.Background())
	attempts := 0
	err := keepConnected(ctx, b, func(context.Context) error {
		if attempts++; attempts == 3 {
			stop()
		}
		return errors.New("connection refused")
	})
	fmt.Printf("after %d attempts: %v\n", attempts, err)
	// Output:
	// after 3 attempts: context canceled
	// connection refused
}
