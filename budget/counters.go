// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"
)

// counters is one number that every call changes, spread over cache lines so that cores seldom meet. A
// part of it may be negative, where a call was counted in one and counted out in another; the sum is not.
type counters []counter

type counter struct {
	n atomic.Int64
	_ [120]byte // two cache lines: processors fetch neighbours in pairs
}

func newCounters() counters { return make(counters, spreadOver()) }

// add picks a counter by the time, which differs between cores.
func (c counters) add(now time.Duration, n int64) { c[pick(now, len(c))].n.Add(n) }

func (c counters) sum() int64 {
	var n int64
	for i := range c {
		n += c[i].n.Load()
	}
	return n
}
