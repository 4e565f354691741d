// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// eventQueue holds what is still to happen, in the order of time, and within one instant in the order of being
// scheduled. The zero value is empty and at time zero.
type eventQueue struct {
	now       time.Duration
	events    []event // a heap with four children each, since memory is slower than comparing
	scheduled uint64
	handled   uint64
}

// event happens to its handler at a time. An event is never taken out of the queue: a handler that does not
// want one any more changes the number that it compares with the event's.
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

// after schedules an event for after a delay, which is not negative. Beyond the end of time it happens at the end.
func (q *eventQueue) after(delay time.Duration, h handler, kind eventKind, number uint32) {
	at := q.now + delay
	if at < q.now {
		at = math.MaxInt64
	}
	q.push(event{at, q.nextOrder(), h, kind, number})
}

// nextOrder is the order of an event that is scheduled now.
func (q *eventQueue) nextOrder() uint64 {
	q.scheduled++
	return q.scheduled
}

// next handles the next event. It reports false if there is none.
func (q *eventQueue) next() bool {
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
	q.events[last] = event{} // let go of the handler
	q.events = q.events[:last]
	if last > 0 {
		q.sink(e)
	}
	return first
}

// sink places e, which takes the place of the first event.
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

// fifo is a queue: first in, first out, unless the newest is asked for. The zero value is empty.
type fifo[T any] struct {
	list  []T
	first int
}

func (f *fifo[T]) len() int { return len(f.list) - f.first }

// front is the first value; there must be one.
func (f *fifo[T]) front() *T { return &f.list[f.first] }

// back is the last value; there must be one.
func (f *fifo[T]) back() *T { return &f.list[len(f.list)-1] }

func (f *fifo[T]) push(v T) {
	if f.first > 64 && f.first > len(f.list)/2 {
		n := copy(f.list, f.list[f.first:])
		clear(f.list[n:])
		f.list, f.first = f.list[:n], 0
	}
	f.list = append(f.list, v)
}

// pop takes out the first value; there must be one.
func (f *fifo[T]) pop() T {
	v := f.list[f.first]
	clear(f.list[f.first : f.first+1])
	f.first++
	return v
}

// popBack takes out the newest value; there must be one.
func (f *fifo[T]) popBack() T {
	last := len(f.list) - 1
	v := f.list[last]
	clear(f.list[last:])
	f.list = f.list[:last]
	return v
}

// remove takes out the values for which gone is true.
func (f *fifo[T]) remove(gone func(T) bool) {
	n := copy(f.list, slices.DeleteFunc(f.list[f.first:], gone))
	clear(f.list[n:])
	f.list, f.first = f.list[:n], 0
}

// deadlines ends the calls of a link in time. Nearly all calls end before their deadlines, and those of one
// link have their deadlines in the order in which they began: so only the first is in the event queue, which
// stays small.
type deadlines struct {
	queue *eventQueue
	fifo  fifo[deadline]
}

type deadline struct {
	callRef

	at    time.Duration
	order uint64
}

// add schedules the end of a call.
func (d *deadlines) add(c *call) {
	due := deadline{callRef: c.ref(), at: max(c.deadline, d.queue.now), order: d.queue.nextOrder()}
	switch first := d.fifo.len() == 0; {
	case first:
		d.fifo.push(due)
		d.schedule()
	case due.at < d.fifo.back().at: // its caller leaves it less time than the calls before have
		d.queue.push(event{due.at, due.order, c, callDeadline, c.life})
	default:
		d.fifo.push(due)
	}
}

// handle implements [handler]: the first deadline has come.
func (d *deadlines) handle(eventKind, uint32) {
	due := d.fifo.pop()
	for d.fifo.len() > 0 && d.fifo.front().over() {
		d.fifo.pop()
	}
	if d.fifo.len() > 0 {
		d.schedule()
	}
	if !due.over() {
		due.call.stop(policy.ReasonDeadlineExceeded, answerLate)
	}
}

func (d *deadlines) schedule() {
	first := d.fifo.front()
	d.queue.push(event{at: first.at, order: first.order, handler: d})
}
