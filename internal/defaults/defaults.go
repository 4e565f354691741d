// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults has the settings that a policy file leaves open. The comments of package policy say them, too.
package defaults

import (
	"time"
)

// What holds where a file says nothing else.
const (
	MaxAttempts       = 5      // the cap over the policies' maxAttempts, which is that of gRPC (gRFC A6)
	MaxWaiting        = 10_000 // calls in a backoff
	MaxPushback       = 300 * time.Second
	MinAttemptTime    = time.Millisecond
	MinHedgingDelay   = time.Millisecond
	MaxConnectionWait = 3 * time.Second // outlasts a restart and gRPC's first attempts to connect
	IdempotencyHeader = "idempotency-key"
)
