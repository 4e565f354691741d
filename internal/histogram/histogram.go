// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram counts durations in bins that are wider for longer ones, so that many take no more memory
// than few.
package histogram

import (
	"iter"
	"math"
	"math/bits"
	"time"
)

// Histogram counts durations. The zero value is empty and ready. It is not safe for concurrent use.
type Histogram struct {
	first   int      // index of the bin that bins[0] counts
	bins    []uint64 // from the shortest duration to the longest
	count   uint64
	sum     float64
	longest time.Duration
}

// Precision is how much too long a quantile may be, as a part of it: a bin is at most that wide.
const Precision = 1.0 / (1 << precisionBits)

const precisionBits = 7 // that two durations of one bin have in common after the leading one

// Add counts a duration. A negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.add(index(d), 1)
	h.sum += float64(d)
	h.longest = max(h.longest, d)
}

// AddAll counts what other has counted.
func (h *Histogram) AddAll(other *Histogram) {
	for i, n := range other.bins {
		if n > 0 {
			h.add(other.first+i, n)
		}
	}
	h.sum += other.sum
	h.longest = max(h.longest, other.longest)
}

func (h *Histogram) add(i int, n uint64) {
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

// Count is how many durations h has counted.
func (h *Histogram) Count() uint64 { return h.count }

// Mean is the average; 0 without durations.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.count))
}

// Quantile is what the part q of the durations, 0 to 1, does not exceed (nearest rank): the upper end of its bin,
// which is never too short, too long by at most [Precision] of itself, and never longer than the longest. It is 0
// without durations.
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

// Bin counts durations from the end of the bin before, which may be empty, to less than Until.
type Bin struct {
	Until time.Duration
	Count uint64
}

// Bins are the bins with durations, and the empty ones before those, from the shortest on.
func (h *Histogram) Bins() iter.Seq[Bin] {
	return func(yield func(Bin) bool) {
		for i, n := range h.bins {
			before := i+1 < len(h.bins) && h.bins[i+1] > 0
			if (n > 0 || before) && !yield(Bin{upper(h.first+i) + 1, n}) {
				return
			}
		}
	}
}

// index is the bin of a duration that is not negative. Short durations have a bin each.
func index(d time.Duration) int {
	v := uint64(d)
	shift := max(bits.Len64(v)-precisionBits-1, 0)
	return shift<<precisionBits + int(v>>shift)
}

// upper is the longest duration of a bin.
func upper(i int) time.Duration {
	shift := max(i>>precisionBits-1, 0)
	return time.Duration((uint64(i-shift<<precisionBits)+1)<<shift - 1)
}
