// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// queue is virtual time: future events in the order of time; simultaneous ones in the order in which they were scheduled.
// The zero value is empty and at time zero.
type queue struct {
	now    time.Duration
	order  uint64
	events events
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// at schedules do for a time that is not in the past.
func (q *queue) at(at time.Duration, do func()) {
	q.order++
	heap.Push(&q.events, event{at, q.order, do})
}

// after schedules do for after a wait.
func (q *queue) after(wait time.Duration, do func()) { q.at(q.now+wait, do) }

// run handles all events until a time.
func (q *queue) run(until time.Duration) {
	for len(q.events) > 0 && q.events[0].at <= until {
		e, _ := heap.Pop(&q.events).(event)
		q.now = e.at
		e.do()
	}
	q.now = until
}

// events is a [heap.Interface].
type events []event

// Len implements [heap.Interface].
func (e *events) Len() int { return len(*e) }

// Swap implements [heap.Interface].
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }

// Less implements [heap.Interface].
func (e *events) Less(i, j int) bool {
	a, b := &(*e)[i], &(*e)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// Push implements [heap.Interface].
func (e *events) Push(x any) {
	add, _ := x.(event)
	*e = append(*e, add)
}

// Pop implements [heap.Interface].
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{} // release what
	*e = (*e)[:last]
	return x
}

func TestQueue(t *testing.T) {
	t.Parallel()
	var (
		q      queue
		chance = rand.New(rand.NewPCG(1, 1))
		last   = event{at: -1}
		ran    int
	)
	for i := range 1000 {
		at := time.Duration(chance.IntN(100))
		q.at(at, func() {
			if q.now != at || at < last.at || at == last.at && uint64(i) < last.order {
				t.Fatalf("event %d of %v at %v, after event %d of %v", i, at, q.now, last.order, last.at)
			}
			last, ran = event{at: at, order: uint64(i)}, ran+1
		})
	}
	q.after(100, func() { t.Error("it is after the end") })
	if q.run(99); ran != 1000 || q.now != 99 {
		t.Errorf("%d of 1000 events happened until %v", ran, q.now)
	}
}
