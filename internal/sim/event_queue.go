// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"
)

// eventQueue holds future events in the order of time; simultaneous ones in the order in which they were scheduled. The zero
// value is empty and at time zero.
type eventQueue struct {
	now       time.Duration
	events    []event // a heap with four children per node: memory is slower than comparisons
	scheduled uint64
	handled   uint64
}

// event calls its handler at a time. Events are never removed from the queue. To cancel one, the handler changes the number
// that it compares with the event's.
type event struct {
	at      time.Duration
	order   uint64
	handler handler
	kind    eventKind
	number  uint32
}

// handler handles the events that were scheduled for it.
type handler interface {
	handle(kind eventKind, number uint32)
}

// eventKind is a number that the handler chooses.
type eventKind uint8

// after schedules an event after a delay, which must not be negative. An event beyond the end of time happens at the end.
func (q *eventQueue) after(delay time.Duration, h handler, kind eventKind, number uint32) {
	at := q.now + delay
	if at < q.now {
		at = math.MaxInt64
	}
	q.scheduled++
	q.push(event{at, q.scheduled, h, kind, number})
}

// handleNext handles the next event. It returns false if there is none.
func (q *eventQueue) handleNext() bool {
	if len(q.events) == 0 {
		return false
	}
	e := q.pop()
	q.now = e.at
	q.handled++
	e.handler.handle(e.kind, e.number)
	return true
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

func (q *eventQueue) push(e event) {
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&q.events[parent]) {
			break
		}
		q.events[i] = q.events[parent]
		i = parent
	}
	q.events[i] = e
}

func (q *eventQueue) pop() event {
	first := q.events[0]
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last] = event{} // release the handler
	q.events = q.events[:last]
	if last > 0 {
		q.sink(e)
	}
	return first
}

// sink puts e in the place of the first event and restores the heap.
func (q *eventQueue) sink(e event) {
	i, n := 0, len(q.events)
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for k := least + 1; k < min(4*i+5, n); k++ {
			if q.events[k].before(&q.events[least]) {
				least = k
			}
		}
		if !q.events[least].before(&e) {
			break
		}
		q.events[i] = q.events[least]
		i = least
	}
	q.events[i] = e
}
