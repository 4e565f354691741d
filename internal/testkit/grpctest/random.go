// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package grpctest

import (
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
)

// WithRandom makes random the source of all jitter. It must return numbers in [0, 1), and be safe for concurrent use.
func WithRandom(random func() float64) interceptor.Option {
	option, _ := inside.Random(random).(interceptor.Option)
	return option
}
