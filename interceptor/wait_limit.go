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
	waiting [attempts.WaitAnswer + 1]int // by what they wait for
	targets map[string]int               // waiting calls by target, of those that have any
}

func (l *waitLimit) setSlots(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots = n
}

// Waiting counts the calls of a Retrier that wait for their next attempt, by what they wait for.
type Waiting struct {
	Backoff    int // the end of a backoff, or of a delay that a server has asked for
	Connection int // a connection
	Answer     int // all attempts fail: an answer to another one
}

// All returns how many calls wait. The policies limit it (maxWaiting).
func (w Waiting) All() int { return w.Backoff + w.Connection + w.Answer }

func (l *waitLimit) waitingCalls() Waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count()
}

// count returns the calls that wait. l.mu must be held.
func (l *waitLimit) count() Waiting {
	return Waiting{l.waiting[attempts.WaitBackoff], l.waiting[attempts.WaitConnection], l.waiting[attempts.WaitAnswer]}
}

// targetSlots are the slots that the calls to one target may take.
type targetSlots struct {
	limit  *waitLimit
	target string
}

var _ attempts.Slots = (*targetSlots)(nil)

// TakeSlot implements [attempts.Slots].
func (s *targetSlots) TakeSlot(w attempts.Wait) bool {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count().All() >= l.slots || l.targets[s.target] >= (l.slots+1)/2 {
		return false
	}
	if l.targets == nil {
		l.targets = map[string]int{}
	}
	l.waiting[w]++
	l.targets[s.target]++
	return true
}

// MoveSlot implements [attempts.Slots].
func (s *targetSlots) MoveSlot(from, to attempts.Wait) {
	s.limit.mu.Lock()
	defer s.limit.mu.Unlock()
	s.limit.waiting[from]--
	s.limit.waiting[to]++
}

// ReleaseSlot implements [attempts.Slots].
func (s *targetSlots) ReleaseSlot(w attempts.Wait) {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[w]--
	l.targets[s.target]--
	if l.targets[s.target] == 0 {
		delete(l.targets, s.target)
	}
}
