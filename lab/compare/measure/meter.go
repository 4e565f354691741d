// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"runtime"
	"runtime/debug"
	"time"
)

// Meter reads what has been used so far.
type Meter interface {
	Now() time.Duration                 // since any fixed time
	Processor() time.Duration           // spent by all processors together; always 0 where nobody knows
	Allocated() (objects, bytes uint64) // since the start
	Settle()                            // leaves nothing for the next subject to pay for
}

// Process is the meter of this process: the monotonic clock, and all that its goroutines allocate.
func Process() Meter { return process{time.Now()} }

type process struct{ began time.Time }

func (p process) Now() time.Duration { return time.Since(p.began) }

func (process) Allocated() (objects, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}

func (process) Settle() { runtime.GC() }

// Held is what this process holds on to.
type Held struct {
	Heap       int64 // bytes that are reachable
	Stacks     int64 // bytes
	Goroutines int
}

// Hold takes stock, after garbage collection.
func Hold() Held {
	for range 2 { // the second one empties what pools have kept over the first
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Held{int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()}
}

// Since is what has been added to what was held before.
func (h Held) Since(before Held) Held {
	return Held{h.Heap - before.Heap, h.Stacks - before.Stacks, h.Goroutines - before.Goroutines}
}
