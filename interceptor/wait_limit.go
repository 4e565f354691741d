// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"

	"github.com/stagger-go/stagger/internal/attempts"
)

// waitLimit bounds the calls of a Retrier that wait between two attempts. Each waiting call holds a slot. One target
// has at most half of the slots, so that a dead one leaves some to the others.
type waitLimit struct {
	mu      sync.Mutex // guards all below
	slots   int
	waiting int
	targets map[string]int // waiting calls by target, of those that have any
}

func (l *waitLimit) setSlots(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots = n
}

func (l *waitLimit) waitingCalls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// targetSlots are the slots that the calls to one target may take.
type targetSlots struct {
	limit  *waitLimit
	target string
}

var _ attempts.Slots = (*targetSlots)(nil)

// TakeSlot implements [attempts.Slots].
func (s *targetSlots) TakeSlot() bool {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.slots || l.targets[s.target] >= (l.slots+1)/2 {
		return false
	}
	if l.targets == nil {
		l.targets = map[string]int{}
	}
	l.waiting++
	l.targets[s.target]++
	return true
}

// ReleaseSlot implements [attempts.Slots].
func (s *targetSlots) ReleaseSlot() {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	l.targets[s.target]--
	if l.targets[s.target] == 0 {
		delete(l.targets, s.target)
	}
}
