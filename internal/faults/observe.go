// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"github.com/stagger-go/stagger/internal/steps"
	"github.com/stagger-go/stagger/testserver"
)

// Observe calls f with every attempt when it begins, and again when it has ended, with End set. f runs before the client gets its
// response. It is called in the attempt's own goroutine, concurrently, and delays the attempt until it returns. It may be given
// more than once.
func Observe(f func(testserver.Attempt)) testserver.Option {
	option, _ := steps.Observe(func(attempt any) {
		a, _ := attempt.(testserver.Attempt)
		f(a)
	}).(testserver.Option)
	return option
}

// HalfClosed reports whether the client has half-closed the stream of an attempt.
func HalfClosed(a testserver.Attempt) bool { return steps.HalfClosed(a) }
