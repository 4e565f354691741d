// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// backend is one server of a service: some workers, and a bounded queue before them, first come, first
// served.
type backend struct {
	service *service
	index   int
	busy    int
	queue   line
	gone    int // of the queue, whose clients have left, if such are dropped
	effect  effect
}

// arrive takes in a request. What is wrong with the backend now decides what becomes of it, also if it is
// served later.
func (b *backend) arrive(a *attempt) {
	b.service.count(a)
	e := &b.effect
	switch {
	case e.hangs:
		return
	case e.down != nil:
		a.reply(e.down)
		return
	case e.flaky > 0 && b.service.chance.Float64() < e.flaky:
		a.fate = e.fails
	case e.slowPart > 0:
		a.tarries = b.service.chance.Float64() < e.slowPart
	}
	switch {
	case b.busy < e.workers:
		b.serve(a)
	case b.queue.len()-b.gone < b.service.spec.Queue:
		a.waiting = true
		b.queue.push(a)
	default:
		b.service.tally.refused++
		a.reply(b.service.full)
	}
}

// serve occupies a worker.
func (b *backend) serve(a *attempt) {
	b.busy++
	took := b.service.draw(b.service.spec.Time)
	if s := b.effect.slower; s != 1 {
		took = time.Duration(float64(took) * s)
	}
	b.service.world.in(took, a, served, 0)
}

// served frees a worker, and goes on with what it was done for.
func (b *backend) served(a *attempt) {
	b.busy--
	b.service.tally.served++
	b.fill()
	if a.call == nil {
		b.service.tally.wasted++
		return
	}
	switch {
	case a.fate != nil:
		a.reply(a.fate)
	case a.tarries:
		b.service.world.in(b.service.draw(b.effect.slowBy), a, ready, 0)
	default:
		a.proceed()
	}
}

// fill gives free workers to who waits.
func (b *backend) fill() {
	for b.busy < b.effect.workers && b.queue.len() > 0 {
		a := b.queue.pop()
		a.waiting = false
		if a.call == nil && b.service.drops {
			b.gone--
			continue
		}
		b.serve(a)
	}
}

// leave takes a request out of the queue whose client has left.
func (b *backend) leave() {
	b.gone++
	b.service.tally.dropped++
}

// line is who waits, in order.
type line struct {
	list  []*attempt
	first int
}

func (l *line) len() int { return len(l.list) - l.first }

func (l *line) push(a *attempt) {
	if l.first > 64 && l.first > len(l.list)/2 {
		n := copy(l.list, l.list[l.first:])
		clear(l.list[n:])
		l.list, l.first = l.list[:n], 0
	}
	l.list = append(l.list, a)
}

func (l *line) pop() *attempt {
	a := l.list[l.first]
	l.list[l.first] = nil
	l.first++
	return a
}
