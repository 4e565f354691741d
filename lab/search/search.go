// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// hunt has the parameters of a search.
type hunt struct {
	seeds    []uint64 // for scenarios
	n        int      // scenarios of each
	names    []string // of players; the first is noRetries
	least    int      // seeds for each
	parallel int      // scenarios to play in parallel, which does not change the results
	// progress is called with the part that is done, by several goroutines, but never in parallel.
	progress func(part float64)
}

// search draws and judges the scenarios. The list is in the order of seeds and numbers.
func (h *hunt) search(ctx context.Context) ([]*judged, error) {
	var (
		n       = h.n * len(h.seeds)
		list    = make([]*judged, n)
		errs    = make([]error, n)
		running sync.WaitGroup
		mu      sync.Mutex
		next    int // guarded by mu, as done is
		done    int
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	for range h.parallel {
		running.Go(func() {
			for i := take(); i < n && ctx.Err() == nil; i = take() {
				list[i], errs[i] = h.drawAndJudge(ctx, h.seeds[i/h.n], i%h.n)
				mu.Lock()
				done++
				h.progress(float64(done) / float64(n))
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return list, errors.Join(errors.Join(errs...), ctx.Err())
}

// drawAndJudge draws and judges one scenario.
func (h *hunt) drawAndJudge(ctx context.Context, seed uint64, index int) (*judged, error) {
	d, err := draw(ctx, seed, index)
	if err != nil {
		return nil, fmt.Errorf("scenario %d of seed %d: %w", index, seed, err)
	}
	j, err := judge(ctx, d, h.names, h.least)
	if err != nil {
		return nil, err
	}
	j.Seed, j.Index = seed, index
	return j, nil
}
