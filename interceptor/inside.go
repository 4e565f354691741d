// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"slices"

	"github.com/stagger-go/stagger/internal/inside"
)

func init() {
	inside.AddObserver = func(retrier, observer any) func() {
		r, _ := retrier.(*Retrier)
		o, _ := observer.(Observer)
		return r.addObserver(o)
	}
	inside.Descriptors = func(retrier any) any {
		r, _ := retrier.(*Retrier)
		return slices.Clone(r.descriptors)
	}
	inside.Random = func(random func() float64) any { return withRandom(random) }
}
