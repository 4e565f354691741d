// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policytest has the settings that most tests begin with.
package policytest

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// UsualRetry returns what most tests begin with: 3 attempts, full jitter between 0 and 50 ms, then 100 ms, only after UNAVAILABLE.
func UsualRetry() spec.Retry {
	return spec.Retry{
		MaxAttempts:          3,
		Backoff:              backoff.Config{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		RetryableStatusCodes: []codes.Code{codes.Unavailable},
	}
}
