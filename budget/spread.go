// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime"
	"time"
)

// spreadOver is over how many counters what every call writes is spread: a power of two, at most 64.
func spreadOver() int {
	n := 4 // for each processor, so that two of them seldom pick the same
	for n < 4*runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return n
}

// pick chooses one of n counters by a time: its nanoseconds are as good as chance, and already known.
func pick(at time.Duration, n int) int {
	return int(uint64(at) * 0x9E3779B97F4A7C15 >> 58 & uint64(n-1)) //nolint:gosec // at most 64
}
