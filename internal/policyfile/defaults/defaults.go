// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults has the default settings of policy files. The comments of package policy repeat them.
package defaults

import (
	"time"
)

// Defaults of keys that a file omits.
const (
	MaxAttempts       = 5      // the cap on the policies' maxAttempts, as in gRPC (gRFC A6)
	MaxWaiting        = 10_000 // calls in a backoff
	MaxPushback       = 300 * time.Second
	MinHedgingDelay   = time.Millisecond
	MaxConnectionWait = 3 * time.Second // longer than a restart and gRPC's first attempts to connect
	IdempotencyHeader = "idempotency-key"
)
