// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import "sync"

// WaitLimit bounds the calls of a Retrier that wait between two attempts. Each waiting call holds a slot. One target
// has at most half of the slots, so that a dead one leaves some to the others.
type WaitLimit struct {
	mu      sync.Mutex // guards all below
	slots   int
	waiting int
	targets map[string]int // waiting calls by target, of those that have any
}

// SetSlots sets how many calls may wait.
func (l *WaitLimit) SetSlots(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots = n
}

// Waiting returns how many calls wait.
func (l *WaitLimit) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// TargetSlots are the slots that the calls to one target may take.
type TargetSlots struct {
	Limit  *WaitLimit
	Target string
}

// TakeSlot implements the Slots of package attempts.
func (s *TargetSlots) TakeSlot() bool {
	l := s.Limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.slots || l.targets[s.Target] >= (l.slots+1)/2 {
		return false
	}
	if l.targets == nil {
		l.targets = map[string]int{}
	}
	l.waiting++
	l.targets[s.Target]++
	return true
}

// ReleaseSlot implements the Slots of package attempts.
func (s *TargetSlots) ReleaseSlot() {
	l := s.Limit
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	l.targets[s.Target]--
	if l.targets[s.Target] == 0 {
		delete(l.targets, s.Target)
	}
}
