// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"runtime"
	"sync/atomic"
	"time"
)

// counter is a number that every call changes. It is striped over cache lines, so that cores seldom write
// to the same one.
type counter struct{ stripes []stripe }

// stripe is a part of the number. It may be negative, where a call was counted in one and counted out in
// another; the sum is not.
type stripe struct {
	n atomic.Int64
	_ [120]byte // two cache lines: processors fetch neighbours in pairs
}

// newCounter has four stripes a processor, 64 at most: a power of two.
func newCounter() counter {
	n := 4
	for n < 4*runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return counter{make([]stripe, n)}
}

// add picks a stripe by the time: its nanoseconds are as good as chance, and already known.
func (c counter) add(now time.Duration, n int64) {
	hash := uint64(now) * 0x9E3779B97F4A7C15 >> 58 // any number will do
	c.stripes[hash&uint64(len(c.stripes)-1)].n.Add(n)
}

func (c counter) sum() int64 {
	var sum int64
	for i := range c.stripes {
		sum += c.stripes[i].n.Load()
	}
	return sum
}
