// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime"
	"sync/atomic"
	"time"
)

// counter is a number that every call changes. It is striped over cache lines, so that cores rarely write to the same one.
type counter struct{ stripes []stripe }

// stripe is a part of the number. It may be negative, if calls were counted in one stripe and counted out in another; the sum
// never is.
type stripe struct {
	n atomic.Int64
	_ [120]byte // two cache lines: processors fetch neighbours in pairs
}

// newCounter returns a counter with four stripes per processor, rounded to a power of two, at most 64.
func newCounter() counter {
	n := 4
	for n < 4*runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return counter{make([]stripe, n)}
}

// addToStripe picks a stripe by the time: its nanoseconds are sufficiently random, and already known.
func (c counter) addToStripe(now time.Duration, n int64) {
	hash := uint64(now) * 0x9E3779B97F4A7C15 >> 58 // any constant works
	c.stripes[hash&uint64(len(c.stripes)-1)].n.Add(n)
}

func (c counter) sum() int64 {
	var sum int64
	for i := range c.stripes {
		sum += c.stripes[i].n.Load()
	}
	return sum
}
