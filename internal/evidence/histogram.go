// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts durations in bins whose width grows with the duration, so its memory does not depend on their number. The zero value is empty and ready. It is not safe for concurrent use.
type Histogram struct {
	first   int      // index of the bin that bins[0] counts
	bins    []uint64 // from the shortest duration to the longest
	count   uint64
	sum     float64
	longest time.Duration
}

// Precision bounds the error of a quantile, as a part of it: the relative width of a bin.
const Precision = 1.0 / (1 << precisionBits)

const precisionBits = 7 // the bits after the leading one that all durations of a bin share

// Add counts a duration. A negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.addToBin(index(d), 1)
	h.sum += float64(d)
	h.longest = max(h.longest, d)
}

// AddAll adds the counts of other.
func (h *Histogram) AddAll(other *Histogram) {
	for i, n := range other.bins {
		if n > 0 {
			h.addToBin(other.first+i, n)
		}
	}
	h.sum += other.sum
	h.longest = max(h.longest, other.longest)
}

func (h *Histogram) addToBin(i int, n uint64) {
	switch end := h.first + len(h.bins); {
	case len(h.bins) == 0:
		h.first, h.bins = i, append(h.bins, 0)
	case i < h.first:
		h.bins = append(make([]uint64, h.first-i), h.bins...)
		h.first = i
	case i >= end:
		h.bins = append(h.bins, make([]uint64, i+1-end)...)
	}
	h.bins[i-h.first] += n
	h.count += n
}

// Reset empties h.
func (h *Histogram) Reset() { *h = Histogram{bins: h.bins[:0]} }

// Count returns the number of durations in h.
func (h *Histogram) Count() uint64 { return h.count }

// Mean returns the average, or 0 without durations.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.count))
}

// Quantile returns the duration that the part q of all durations, 0 to 1, does not exceed (nearest rank). It is the upper end of
// a bin: never too short, too long by at most [Precision] of itself, and never longer than the longest duration. Without
// durations it is 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(max(math.Ceil(q*float64(h.count)), 1))
	var n uint64
	for i, in := range h.bins {
		if n += in; n >= rank {
			return min(upper(h.first+i), h.longest)
		}
	}
	return 0
}

// index returns the bin of a duration, which must not be negative. Each short duration has its own bin.
func index(d time.Duration) int {
	v := uint64(d)
	shift := max(bits.Len64(v)-precisionBits-1, 0)
	return shift<<precisionBits + int(v>>shift)
}

// upper returns the longest duration of a bin.
func upper(i int) time.Duration {
	shift := max(i>>precisionBits-1, 0)
	return time.Duration((uint64(i-shift<<precisionBits)+1)<<shift - 1)
}
