// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Arrivals draws the calls of a scenario's fleet: independent of each other, as those of many users are, so that
// the times between them follow the exponential distribution. One seed gives the same calls every time, and those
// of the simulator.
func Arrivals(s *sim.Scenario, seed uint64) []Call {
	random := newRandom(seed, 0)
	fleet := &s.Fleets[0]
	var (
		list       []Call
		begin, end time.Duration
	)
	for i := range s.Phases {
		p := &s.Phases[i]
		begin, end = end, end+p.Length
		rate := fleet.Rate * p.Load
		for at := begin; ; {
			at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
			if at >= end {
				break // the exponential has no memory: the next phase may begin anew
			}
			list = append(list, Call{At: at, Method: fleet.Calls[0].Method})
		}
	}
	return list
}

func newRandom(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream))
}
