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
	seed     uint64
	n        int      // scenarios
	names    []string // of players; the first is noRetries
	least    int      // seeds that each scenario is played under
	parallel int      // scenarios that are played at a time, which changes nothing of what is found
	// progress hears which part is done, by several goroutines, but not by two at once.
	progress func(part float64)
}

// search draws and judges the scenarios, which stand in the list by their numbers.
func (h *hunt) search(ctx context.Context) ([]*judged, error) {
	var (
		n       = h.n
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
				list[i], errs[i] = h.drawAndJudge(ctx, i)
				mu.Lock()
				done++
				h.progress(float64(done) / float64(n))
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return list, errors.Join(append(errs, ctx.Err())...)
}

// drawAndJudge draws and judges one scenario.
func (h *hunt) drawAndJudge(ctx context.Context, index int) (*judged, error) {
	d, err := draw(ctx, h.seed, index)
	if err != nil {
		return nil, fmt.Errorf("scenario %d: %w", index, err)
	}
	return judge(ctx, index, d, h.names, h.least)
}
