// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/bits"
	"time"
)

// spread counts durations in bins that are 1/64 of their size wide at most, so that the memory for many is
// that for few. The zero value is empty.
type spread struct {
	bins []uint64
	n    uint64
	sum  float64
	most time.Duration
}

const binBits = 6 // of a duration's leading digits

func (s *spread) add(d time.Duration) {
	i := binOf(d)
	if i >= len(s.bins) {
		s.bins = append(s.bins, make([]uint64, i+1-len(s.bins))...)
	}
	s.bins[i]++
	s.n++
	s.sum += float64(d)
	s.most = max(s.most, d)
}

// binOf is the bin of a duration: small ones have one each.
func binOf(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-binBits-1, 0)
	return shift<<binBits + int(v>>shift) //nolint:gosec // less than 128 after the shift
}

// highest is the longest duration of a bin.
func highest(i int) time.Duration {
	shift := max(i>>binBits-1, 0)
	return time.Duration((uint64(i-shift<<binBits)+1)<<shift - 1) //nolint:gosec // as binOf made it
}

// quantile is what the part q does not exceed (nearest rank), at most 1/64 too long; 0 for none.
func (s *spread) quantile(q float64) time.Duration {
	rank := uint64(max(math.Ceil(q*float64(s.n)), 1))
	var n uint64
	for i, in := range s.bins {
		if n += in; n >= rank {
			return min(highest(i), s.most)
		}
	}
	return 0
}

func (s *spread) mean() time.Duration {
	if s.n == 0 {
		return 0
	}
	return time.Duration(s.sum / float64(s.n))
}
