// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"fmt"
	"time"

	"github.com/stagger-go/stagger/backoff"
)

// Delays of a config without jitter, and with: the random number is the caller's.
func ExampleConfig_Delay() {
	c := backoff.Config{Initial: 100 * time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: backoff.JitterNone}
	for retry := range 5 {
		fmt.Print(c.Delay(retry, 0, 0), " ")
	}
	c.Jitter = backoff.JitterFull
	fmt.Println(c.Delay(0, 0, 0.25))
	// Output: 100ms 200ms 400ms 800ms 1s 25ms
}

// A config that a user has written can be wrong in several ways.
func ExampleConfig_Check() {
	fmt.Println(backoff.Config{Initial: -time.Second, Multiplier: 2}.Check())
	// Output:
	// backoff: Initial -1s: must be more than 0s
	// backoff: Max 0s: must be more than 0s
}
