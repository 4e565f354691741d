// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"

	"github.com/stagger-go/stagger/internal/attempts"
)

// waitLimit bounds how many calls of a Retrier wait between two attempts. Each waiting call holds a slot.
type waitLimit struct {
	slots   atomic.Int64
	waiting atomic.Int64
}

var _ attempts.Slots = (*waitLimit)(nil)

// Enter implements [attempts.Slots].
func (l *waitLimit) Enter() bool {
	for {
		waiting := l.waiting.Load()
		if waiting >= l.slots.Load() {
			return false
		}
		if l.waiting.CompareAndSwap(waiting, waiting+1) {
			return true
		}
	}
}

// Leave implements [attempts.Slots].
func (l *waitLimit) Leave() { l.waiting.Add(-1) }
