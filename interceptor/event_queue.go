// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
)

// eventQueue is what observers are still to be told of a call. It is filled under the call's lock, and told without, one
// event after the other, by whichever goroutine comes first.
type eventQueue struct {
	filled  atomic.Bool // there are events
	mu      *sync.Mutex // the call's, which guards all below
	events  []func()
	telling bool      // a goroutine tells them
	space   [2]func() // of events, for most calls
}

// push has observers told by event, after those before it; nil: of nothing. q.mu must be held.
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

// pop returns the event to tell; nil if there is none, or another goroutine tells one.
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

// told lets the next event be told.
func (q *eventQueue) told() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.telling = false
}

// tell tells observers what has happened, unless another goroutine does. If that panics, the next event can still be told.
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
