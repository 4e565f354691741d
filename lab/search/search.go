// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// hunt is what is searched.
type hunt struct {
	seeds    []uint64 // that scenarios are drawn from
	n        int      // scenarios of each
	names    []string // of players; the first is noRetries
	least    int      // seeds that each scenario is played under
	parallel int      // scenarios that are played at a time, which changes nothing of what is found
	// progress hears which part is done, by several goroutines, but not by two at once.
	progress func(part float64)
}

// search draws and judges the scenarios, which stand in the list by seed and number.
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
