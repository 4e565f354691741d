// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// arrivals draws when the calls of a storm begin, from its start: independent of each other, as
// those of many users are, so that the gaps follow the exponential distribution. They come whatever
// became of the calls before. The same seed gives the same times.
func arrivals(s storm, capacity float64, seed uint64) []time.Duration {
	chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a storm must repeat
	var (
		list       []time.Duration
		begin, end time.Duration
	)
	for _, p := range s.phases {
		begin, end = end, end+p.length
		rate := p.load * capacity
		for at := begin; ; {
			at += time.Duration(chance.ExpFloat64() / rate * float64(time.Second))
			if at >= end {
				break // the exponential has no memory: the next phase may begin anew
			}
			list = append(list, at)
		}
	}
	return list
}
