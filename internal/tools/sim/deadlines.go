// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/policy"
)

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
