// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package random replaces the random numbers of Retriers in tests and simulations that repeat.
package random

import (
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
)

// With makes random the source of all jitter. It must return numbers in [0, 1), and be safe for concurrent use.
func With(random func() float64) interceptor.Option {
	option, _ := inside.Random(random).(interceptor.Option)
	return option
}
