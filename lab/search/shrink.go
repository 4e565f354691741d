// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
)

// Limits of shrinking.
const (
	mostTries   = 150
	shrinkSeeds = 2
	leastLoss   = 0.03
)

// shrink draws a scenario again with as many draws at their simplest as possible, while the player loses at least half of its
// original loss, and at least 3 points.
func shrink(ctx context.Context, seed uint64, index int, player string) (best *scenario, loss float64, err error) {
	var least float64
	fixed, names, tries := map[string]float64{}, []string{"as drawn at first"}, 0
	for again := true; again; {
		again = false
		for _, name := range names {
			if _, ok := fixed[name]; ok || tries > mostTries {
				continue
			}
			tries++
			simpler := maps.Clone(fixed)
			simpler[name] = 0
			s, err := draw(ctx, newChance(seed, index, simpler), []string{noRetries, player})
			if err != nil {
				return nil, 0, err
			}
			now, err := s.lossOf(ctx)
			if err != nil {
				return nil, 0, err
			}
			if best == nil {
				least, now = max(now/2, leastLoss), max(now, leastLoss)
			}
			if now >= least {
				best, loss, fixed, names, again = s, now, simpler, s.draws, true
			}
		}
	}
	return best, loss, nil
}

// lossOf returns how much worse the second variant is than the first.
func (s *scenario) lossOf(ctx context.Context) (loss float64, err error) {
	for seed := 1; seed <= shrinkSeeds; seed++ {
		list, err := s.play(ctx, seed, []string{s.Variants[0].Name, s.Variants[1].Name})
		if err != nil {
			return 0, err
		}
		loss += (list[0].success - list[1].success) / shrinkSeeds
	}
	return loss, nil
}
