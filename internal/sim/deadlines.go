// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/policy"
)

// deadlines are when the calls of a link are to end. Nearly all calls end before, and those of one link have
// their deadlines in the order in which they began: so only the first stands on the agenda, which stays small.
type deadlines struct {
	agenda *agenda
	list   []deadline
	first  int
}

type deadline struct {
	at    time.Duration
	order uint64
	call  *call
	life  uint32
}

func (d *deadline) over() bool { return d.call.life != d.life }

// put puts down when a call ends, as if it were put on the agenda.
func (d *deadlines) put(c *call) {
	a := d.agenda
	at := max(c.deadline, a.now)
	a.count++
	waiting := len(d.list) - d.first
	if waiting > 0 && at < d.list[len(d.list)-1].at { // its caller leaves it less time than the calls before
		a.put(event{at, a.count, c, ends, c.life})
		return
	}
	if d.first > 1024 && d.first > len(d.list)/2 {
		n := copy(d.list, d.list[d.first:])
		clear(d.list[n:])
		d.list, d.first = d.list[:n], 0
	}
	d.list = append(d.list, deadline{at, a.count, c, c.life})
	if waiting == 0 {
		a.put(event{at, a.count, d, 0, 0})
	}
}

// act implements [actor]: the first deadline has come.
func (d *deadlines) act(what, uint32) {
	due := d.take()
	for d.first < len(d.list) && d.list[d.first].over() {
		d.take()
	}
	if d.first < len(d.list) {
		next := &d.list[d.first]
		d.agenda.put(event{next.at, next.order, d, 0, 0})
	}
	if !due.over() {
		due.call.stop(policy.ReasonDeadlineExceeded, late)
	}
}

func (d *deadlines) take() deadline {
	due := d.list[d.first]
	d.list[d.first].call = nil
	d.first++
	return due
}
