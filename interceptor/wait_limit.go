// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"maps"
	"sync"
	"sync/atomic"
)

// mostTargets is the number of targets whose counts are kept without need.
const mostTargets = 1 << 10

// waitLimit bounds the calls of a Retrier that wait between two attempts. Each waiting call holds a slot. One target
// has at most half of the slots, so that a dead one leaves some to the others.
type waitLimit struct {
	slots atomic.Int64

	mu      sync.Mutex // guards all below
	waiting int64
	targets map[string]*int64 // waiting calls by target; those without any stay until others need the place
}

// takeSlot returns the count of the target's waiting calls, to which it has added one, for releaseSlot; nil if no slot is free.
func (l *waitLimit) takeSlot(target string) *int64 {
	slots := l.slots.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.targets[target]
	switch {
	case l.waiting >= slots || of != nil && *of >= (slots+1)/2:
		return nil
	case of == nil:
		if len(l.targets) >= max(mostTargets, 2*int(l.waiting)) { // then at least half of them go
			maps.DeleteFunc(l.targets, func(_ string, of *int64) bool { return *of == 0 })
		}
		of = new(int64)
		l.targets[target] = of
	}
	l.waiting++
	*of++
	return of
}

func (l *waitLimit) releaseSlot(of *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	*of--
}

func (l *waitLimit) waitingCalls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.waiting)
}
