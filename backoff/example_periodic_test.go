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

// repeat runs work about every interval, and sooner after a failure, until ctx is done.
func repeat(ctx context.Context, interval time.Duration, onFailure backoff.Config, work func(context.Context) error) {
	onSuccess := backoff.Config{Initial: interval, Max: interval, Growth: backoff.GrowthFixed, Jitter: backoff.JitterProportional}
	failures, delay := 0, time.Duration(0)
	for {
		if err := work(ctx); err != nil {
			delay = onFailure.Delay(failures, delay, rand.Float64())
			failures++
		} else {
			delay = onSuccess.Delay(0, 0, rand.Float64())
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// Refresh a cache. Processes that start together don't refresh together.
func Example_refresh() {
	onFailure := backoff.Config{Initial: time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: backoff.JitterEqual}
	ctx, stop := context.WithCancel(context.Background())
	refreshes := 0
	repeat(ctx, 2*time.Millisecond, onFailure, func(context.Context) error {
		switch refreshes++; refreshes {
		case 1:
			return errors.New("unavailable")
		case 3:
			stop()
		}
		return nil
	})
	fmt.Println(refreshes, "refreshes")
	// Output: 3 refreshes
}
