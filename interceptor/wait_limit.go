// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
)

// waitLimit bounds the calls of a Retrier that wait between two attempts. Each waiting call holds a slot. One target
// has at most half of the slots, so that a dead one leaves some to the others.
type waitLimit struct {
	slots atomic.Int64

	mu      sync.Mutex // guards all below
	waiting int64
	targets map[string]int64 // waiting calls by target
}

func (l *waitLimit) takeSlot(target string) bool {
	slots := l.slots.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= slots || l.targets[target] >= (slots+1)/2 {
		return false
	}
	if l.targets == nil {
		l.targets = map[string]int64{}
	}
	l.waiting++
	l.targets[target]++
	return true
}

func (l *waitLimit) releaseSlot(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if l.targets[target]--; l.targets[target] == 0 {
		delete(l.targets, target)
	}
}

func (l *waitLimit) waitingCalls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.waiting)
}
