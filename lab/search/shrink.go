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
	shrinkPlays = 2
	leastLoss   = 0.03
)

// shrink draws a scenario again with as many draws at their simplest as possible, while the player loses at least half of its
// original loss, and at least 3 points.
func shrink(ctx context.Context, j *judged, player string) (best *scenario, loss float64, err error) {
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
			s, err := draw(ctx, newChance(j.Set, j.Seed, j.Index, simpler), playersOf(j.Set, []string{player}))
			if err != nil {
				return nil, 0, err
			}
			now, err := s.lossOf(ctx, player)
			if err != nil {
				return nil, 0, err
			}
			if best == nil {
				least, now = max(now/2, leastLoss), max(now, leastLoss)
			}
			if now >= least {
				best, loss, fixed, names, again = s, now, simpler, s.names, true
			}
		}
	}
	return best, loss, nil
}

// lossOf returns how much worse a player is than the best of the others.
func (s *scenario) lossOf(ctx context.Context, player string) (loss float64, err error) {
	names := make([]string, 0, len(s.Variants))
	for _, v := range s.Variants {
		names = append(names, v.Name)
	}
	success := map[string]float64{}
	for n := range shrinkPlays {
		list, err := s.play(ctx, n, names)
		if err != nil {
			return 0, err
		}
		for i, name := range names {
			success[name] += list[i].Success / shrinkPlays
		}
	}
	best := 0.0
	for name, of := range success {
		if name != player {
			best = max(best, of)
		}
	}
	return best - success[player], nil
}
