// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync/atomic"
)

// notice is an event and the function of an observer that receives it; both are nil for the end of a stream.
type notice struct {
	event *Event
	told  func(*Observer) func(context.Context, Event)
}

// eventQueue has the events of a call that observers have yet to receive. It is filled under the call's lock. The first
// goroutine that comes delivers the events without the lock, one after the other.
type eventQueue struct {
	filled  atomic.Bool // the queue has events
	mu      *lock       // the call's, which guards all below
	events  []notice
	telling bool // a goroutine delivers one
}

// push appends events. q.mu must be held.
func (q *eventQueue) push(events ...notice) {
	q.events = append(q.events, events...)
	if len(q.events) > 0 {
		q.filled.Store(true)
	}
}

// pop returns the next event, unless there is none or another goroutine delivers one.
func (q *eventQueue) pop() (n notice, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.telling || len(q.events) == 0 {
		return n, false
	}
	n, q.events, q.telling = q.events[0], q.events[1:], true
	q.filled.Store(len(q.events) > 0)
	return n, true
}

// told ends the delivery of an event, and allows the next one.
func (q *eventQueue) told() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.telling = false
}

// tell delivers the events, unless another goroutine does. After a panic, later events can still be delivered.
func (q *eventQueue) tell(deliver func(notice)) {
	for q.filled.Load() {
		n, ok := q.pop()
		if !ok {
			return
		}
		func() {
			defer q.told()
			deliver(n)
		}()
	}
}
