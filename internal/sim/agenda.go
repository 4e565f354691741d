// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// agenda is what is to happen, in the order of time and, at one time, of being put down. The zero value is
// empty and at time zero.
type agenda struct {
	now    time.Duration
	events []event // a heap: four below each, since memory is slower than comparing
	count  uint64
	passed uint64 // events so far
}

// event is what happens to somebody at a time. Nothing is taken off the agenda: who does not want an event
// any more changes the number that it was put down with.
type event struct {
	at     time.Duration
	order  uint64
	who    actor
	what   what
	number uint32
}

// actor is somebody to whom things happen.
type actor interface {
	act(what what, number uint32)
}

type what uint8

// in puts something down for after a delay, which is not negative.
func (a *agenda) in(delay time.Duration, who actor, what what, number uint32) {
	a.count++
	a.put(event{a.now + delay, a.count, who, what, number})
}

func (a *agenda) put(e event) {
	a.events = append(a.events, e)
	i := len(a.events) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.events[up]) {
			break
		}
		a.events[i] = a.events[up]
		i = up
	}
	a.events[i] = e
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// next lets the next event happen, and reports whether there was one.
func (a *agenda) next() bool {
	if len(a.events) == 0 {
		return false
	}
	e := a.pop()
	a.now = e.at
	a.passed++
	e.who.act(e.what, e.number)
	return true
}

func (a *agenda) pop() event {
	first := a.events[0]
	last := len(a.events) - 1
	e := a.events[last]
	a.events[last] = event{} // let go of who
	a.events = a.events[:last]
	if last > 0 {
		a.sink(e)
	}
	return first
}

// sink finds the place of e, which takes that of the first.
func (a *agenda) sink(e event) {
	i, n := 0, len(a.events)
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for k := least + 1; k < min(4*i+5, n); k++ {
			if a.events[k].before(&a.events[least]) {
				least = k
			}
		}
		if !a.events[least].before(&e) {
			break
		}
		a.events[i] = a.events[least]
		i = least
	}
	a.events[i] = e
}
