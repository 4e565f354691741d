// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math/rand/v2"
	"time"
)

// arrival is a call that a user makes, whatever became of the calls before.
type arrival struct {
	at    time.Duration // from the day's start
	order bool          // CreateOrder, which nobody has declared safe; else GetOrder
}

// orderShare is the part of the calls that creates an order.
const orderShare = 0.02

// schedule draws the calls of a day: independent of each other, as those of many users are, so that
// the times between them follow the exponential distribution. The same seed gives the same calls.
func schedule(d day, seed uint64) []arrival {
	chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a demo must repeat
	var (
		list       []arrival
		begin, end time.Duration
	)
	for _, p := range d.phases {
		begin, end = end, end+p.length
		rate := p.load * d.fleet.capacity()
		for at := begin; ; {
			at += time.Duration(chance.ExpFloat64() / rate * float64(time.Second))
			if at >= end {
				break // the exponential has no memory: the next phase may begin anew
			}
			list = append(list, arrival{at: at, order: chance.Float64() < orderShare})
		}
	}
	return list
}
