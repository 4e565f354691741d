// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/policy"
)

// row is what all want to change.
type row struct {
	agenda

	random  *rng
	network *Distribution
	version int
	writes  int
}

func (r *row) delay() time.Duration { return r.network.draw(r.random) }

// contender is one client.
type contender struct {
	row      *row
	backoff  *policy.Backoff
	version  int // that it has read
	failures int
	waited   time.Duration // last
	won      bool
}

// The events of a contender; messages take their time in between.
const (
	reads what = iota // its read is at the row
	knows             // it knows the version
	write             // its write is at the row
	hears             // it knows how that went
)

// act implements [actor].
func (c *contender) act(what what, _ uint32) {
	r := c.row
	switch what {
	case reads:
		c.version = r.version
		r.in(r.delay(), c, knows, 0)
	case knows:
		r.in(r.delay(), c, write, 0)
	case write:
		r.writes++
		if c.won = c.version == r.version; c.won {
			r.version++
		}
		r.in(r.delay(), c, hears, 0)
	case hears:
		if !c.won {
			c.failures++
			r.in(c.wait()+r.delay(), c, reads, 0)
		}
	}
}

// wait is how long it waits after a failure. The published simulator counts failures from one before it
// raises to the power, so its first wait is twice the base; so is this one.
func (c *contender) wait() time.Duration {
	if c.backoff == nil {
		return 0
	}
	c.waited = c.backoff.Delay(c.failures, c.waited, c.row.random.Float64())
	return c.waited
}
