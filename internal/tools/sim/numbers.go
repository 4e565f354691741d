// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "math/bits"

// numbers is a set of numbers from 0, a bit for each. The zero value is empty.
type numbers []uint64

func (s *numbers) add(n int) {
	for len(*s) <= n/64 {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

// without is how many of the numbers another set does not have.
func (s *numbers) without(other *numbers) int {
	count := 0
	for i, word := range *s {
		if i < len(*other) {
			word &^= (*other)[i]
		}
		count += bits.OnesCount64(word)
	}
	return count
}

// compare counts the calls that failed in one variant and succeeded in another. The calls of a fleet with a rate come at the same
// times in each, so they have the same numbers.
func (r *Result) compare() {
	for i := range r.Runs {
		for k := range r.Runs[i].Fleets {
			f := &r.Runs[i].Fleets[k]
			if len(r.Runs) < 2 || r.Scenario.Fleets[k].Think != nil {
				continue
			}
			f.ServedBy = make(map[string]int, len(r.Runs)-1)
			for other := range r.Runs {
				if other != i {
					f.ServedBy[r.Runs[other].Name] = r.Runs[other].Fleets[k].served.without(&f.served)
				}
			}
		}
	}
}
