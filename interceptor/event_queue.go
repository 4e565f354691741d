// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
)

// eventQueue has the events of a call that observers have yet to receive. It is filled under the call's lock. The first
// goroutine that comes delivers the events without the lock, one after the other.
type eventQueue struct {
	filled  atomic.Bool // the queue has events
	mu      *sync.Mutex // the call's, which guards all below
	events  []func()
	telling bool      // a goroutine delivers them
	space   [2]func() // enough for most calls
}

// push appends event, which notifies observers; nil has no effect. q.mu must be held.
func (q *eventQueue) push(event func()) {
	if event == nil {
		return
	}
	if q.events == nil {
		q.events = q.space[:0]
	}
	q.events = append(q.events, event)
	q.filled.Store(true)
}

// pop returns the next event, or nil if there is none or another goroutine delivers one.
func (q *eventQueue) pop() (event func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.telling || len(q.events) == 0 {
		return nil
	}
	event, q.events, q.telling = q.events[0], q.events[1:], true
	q.filled.Store(len(q.events) > 0)
	return event
}

// told ends the delivery of an event, and allows the next one.
func (q *eventQueue) told() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.telling = false
}

// tell delivers the events, unless another goroutine does. After a panic, later events can still be delivered.
func (q *eventQueue) tell(run func(event func())) {
	for q.filled.Load() {
		event := q.pop()
		if event == nil {
			return
		}
		func() {
			defer q.told()
			run(event)
		}()
	}
}
