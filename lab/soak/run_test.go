// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak runs a Retrier over loopback for a given time, with faults of all kinds: servers that fail, hang, cut
// connections and stop; policies that change and are invalid; modes that change; connections and Retriers that are replaced.
// It checks every answer, and what is left at the end, and prints one page.
package soak

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	samples    = 10
	patience   = 20 * time.Second // for cleanup after
	heapGrowth = 16 << 20         // growth without a leak: pools
)

// counts are numbers of calls by how they ended.
type counts struct {
	mu sync.Mutex
	by map[codes.Code]int
}

func (c *counts) of(code codes.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[codes.Code]int{}
	}
	c.by[code]++
}

func (c *counts) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, calls := range c.by {
		n += calls
	}
	return n
}

// options configure a world's run.
type options struct {
	length  time.Duration
	seed    uint64
	callers int
}

// soak runs a world, and returns the results.
func soak(ctx context.Context, o options) (*page, error) {
	folder, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // the system clears its folder, too
	before := runtime.NumGoroutine()
	w, err := newWorld(folder, o.seed)
	if err != nil {
		return nil, err
	}
	p := &page{options: o, world: w}
	p.run(ctx)
	if text := eventually(w.settled); text != "" {
		w.add("something is left of calls", "%s", text)
	}
	p.samples = append(p.samples, w.sample(p.options.length))
	if err := w.close(); err != nil {
		return nil, err
	}
	if text := eventually(func() string {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Sprintf("%d, and %d before", n, before)
		}
		return ""
	}); text != "" {
		w.add("goroutines are left", "%s", text)
	}
	if first, last := p.samples[0], p.samples[len(p.samples)-1]; last.heap > first.heap+heapGrowth {
		w.add("memory grows", "from %d KiB to %d KiB", first.heap>>10, last.heap>>10)
	}
	return p, nil
}

// run lets everything happen for the given time, and takes samples.
func (p *page) run(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, p.options.length)
	defer stop()
	var all sync.WaitGroup
	for _, trouble := range p.world.trouble(ctx) {
		all.Go(trouble)
	}
	for n := range p.options.callers {
		all.Go(func() { p.world.caller(ctx, n) })
	}
	begin := time.Now()
	tick := time.NewTicker(p.options.length / samples)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			p.samples = append(p.samples, p.world.sample(time.Since(begin)))
		case <-ctx.Done():
		}
	}
	if len(p.samples) == 0 { // interrupted
		p.samples = append(p.samples, p.world.sample(time.Since(begin)))
	}
	all.Wait()
}

// sample has a world's resources at a time.
type sample struct {
	at         time.Duration
	calls      int
	goroutines int
	heap       uint64 // in use, in bytes
}

func (w *world) sample(at time.Duration) sample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{at, w.counts.total(), runtime.NumGoroutine(), m.HeapAlloc}
}

// eventually waits until what returns "". It returns the last text if that takes too long.
func eventually(what func() string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text := what()
		if text == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return text
		}
	}
}
