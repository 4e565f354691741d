// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Limits. One seed shows where to look; only the mean of five proves that a player is worse.
const (
	seeds      = 5
	suspicious = 0.01 // if worse than no retries by more under the first seed, the other seeds are played
	leastCalls = 0.02 // half of this success without retries can be lost
)

// outcome has the results of a scenario's calls with a player, in the trouble and after it.
type outcome struct {
	success float64 // 0 to 1
	never   bool    // the calls have not recovered
	perCall float64 // requests at the last service
}

// judged has the outcomes of a scenario with all players.
type judged struct {
	seed    uint64
	index   int
	about   string
	players map[string][]outcome // by seed, from 1; no retries has at least as many as any other
}

// play plays the scenario with these players, under one seed: the same calls at the same times.
func (s *scenario) play(ctx context.Context, seed int, names []string) ([]outcome, error) {
	of := *s.Scenario
	of.Variants = slices.DeleteFunc(slices.Clone(s.Variants), func(v sim.Variant) bool { return !slices.Contains(names, v.Name) })
	r, err := of.Run(ctx, sim.Options{Seed: uint64(seed)})
	if err != nil {
		return nil, err
	}
	var list []outcome
	for _, run := range r.Runs {
		users := run.Fleets[0]
		list = append(list, outcome{users.Success, users.Recovery.State == sim.RecoveryNever, run.Services[len(run.Services)-1].PerCall})
	}
	return list, nil
}

// judge plays a scenario under one seed with each of these players, and under four more with those that look worse than no
// retries, which must be the first.
func (s *scenario) judge(ctx context.Context, names []string) (*judged, error) {
	j := &judged{about: s.About, players: map[string][]outcome{}}
	for seed := 1; seed <= seeds && len(names) > 1; seed++ {
		list, err := s.play(ctx, seed, names)
		if err != nil {
			return nil, err
		}
		for i, o := range list {
			j.players[names[i]] = append(j.players[names[i]], o)
		}
		if seed == 1 {
			names = slices.DeleteFunc(slices.Clone(names), func(n string) bool {
				loss, half, never := j.result(n)
				return n != noRetries && loss <= suspicious && !half && !never
			})
		}
	}
	return j, nil
}

// search draws and judges n scenarios of each seed. Progress is called with the part that is done.
func search(ctx context.Context, from []uint64, n int, names []string, progress func(part float64)) (list []*judged, err error) {
	for _, seed := range from {
		for index := range n {
			s, err := draw(ctx, newChance(seed, index, nil), names)
			if err != nil {
				return nil, fmt.Errorf("scenario %d of seed %d: %w", index, seed, err)
			}
			j, err := s.judge(ctx, names)
			if err != nil {
				return nil, err
			}
			j.seed, j.index = seed, index
			list = append(list, j)
			progress(float64(len(list)) / float64(n*len(from)))
		}
	}
	return list, nil
}

// result compares a player with no retries in the played seeds: the mean loss of success, 0 to 1; whether less than half of the calls
// succeed that do so without retries; and whether in most plays the calls do not recover, but do so without retries.
func (j *judged) result(name string) (loss float64, half, never bool) {
	var own, none, stuck, n float64
	for i, o := range j.players[name] {
		ref := j.players[noRetries][i]
		n, own, none = n+1, own+o.success, none+ref.success
		if o.never && !ref.never {
			stuck++
		}
	}
	return (none - own) / n, none >= n*leastCalls && own < none/2, stuck > n/2
}

func (j *judged) loss(name string) float64 {
	loss, _, _ := j.result(name)
	return loss
}

// sum has a player's results in many scenarios.
type sum struct {
	over          [3]uint64 // worse than no retries by more than 1, 3 and 10 points
	half, never   uint64
	gain, perCall float64
}

func count(list []*judged, name string) (s sum) {
	for _, j := range list {
		loss, half, never := j.result(name)
		for i, limit := range []float64{0.01, 0.03, 0.1} {
			if loss > limit {
				s.over[i]++
			}
		}
		if half {
			s.half++
		}
		if never {
			s.never++
		}
		first, n := j.players[name][0], float64(len(list))
		s.gain += (first.success - j.players[noRetries][0].success) / n
		s.perCall += first.perCall / n
	}
	return s
}
