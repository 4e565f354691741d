// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/inside"
)

func init() {
	inside.Admission = func(retrier any) []inside.AdmissionState {
		r, _ := retrier.(*Retrier)
		return r.admissions()
	}
	inside.Random = func(random func() float64) any { return withRandom(random) }
	inside.Since = func(retrier any) time.Time {
		r, _ := retrier.(*Retrier)
		return r.rules.Load().since
	}
}

// withRandom makes random the source of all jitter.
func withRandom(random func() float64) Option {
	return func(r *Retrier) error {
		r.random = random
		return nil
	}
}
