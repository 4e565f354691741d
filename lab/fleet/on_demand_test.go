// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/lease"
)

// onDemand is the implemented scheme: a [lease.Lease], driven as by redisbudget.
type onDemand struct {
	*lease.Lease

	world *world
	count tokens
	next  time.Duration // when it checks again what to request
}

func newOnDemand(w *world) reserve {
	d := &onDemand{world: w, next: lease.Never}
	d.Lease = lease.New(w.perSecond, w.now, d.look)
	d.look()
	return d
}

// look sends the requests that are due, or waits until one is.
func (d *onDemand) look() {
	w := d.world
	r, at, ok := d.Next(w.now)
	if !ok {
		d.wait(at)
		return
	}
	w.pool.ask(r, &d.count.granted, func(a lease.Answer) {
		d.Answered(w.now, r, a)
		d.look()
	}, func() {
		d.Failed(w.now)
		d.look()
	})
}

// wait calls look at a time, unless it is called before.
func (d *onDemand) wait(at time.Duration) {
	if at >= d.next {
		return
	}
	d.next = at
	d.world.at(at, func() {
		d.next = lease.Never
		d.look()
	})
}

// Take implements [balance.Lease].
func (d *onDemand) Take(now time.Duration, tokens int64) (balance.Draw, bool) {
	draw, ok := d.Lease.Take(now, tokens)
	if ok && !draw.Asked {
		d.count.spent += tokens
	}
	return draw, ok
}

// Confirm implements [balance.Lease].
func (d *onDemand) Confirm(now time.Duration, draw balance.Draw) bool {
	ok := d.Lease.Confirm(now, draw)
	if ok {
		d.count.spent += draw.Tokens
	}
	return ok
}

func (d *onDemand) tokens() *tokens { return &d.count }
