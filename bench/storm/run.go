// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// tally is what came out of a storm: a result for each contender, the one without retries first.
type tally struct {
	storm   storm
	who     []contender
	results []result
}

// run plays a storm for all contenders, some at a time, and judges them. Those whose calls the machine
// made begin too late are played again, at most as often as s says.
func run(ctx context.Context, s storm, who []contender, with settings) (*tally, error) {
	t := &tally{storm: s, who: who}
	for i := 0; i < len(who); i += with.beside {
		group := who[i:min(i+with.beside, len(who))]
		results, err := leastLate(with.again, func() ([]result, error) { return runOnce(ctx, s, group, with.seed) })
		if err != nil {
			return nil, err
		}
		t.results = append(t.results, results...)
	}
	t.judge()
	return t, nil
}

func runOnce(ctx context.Context, s storm, group []contender, seed uint64) ([]result, error) {
	records, err := play(ctx, s, group, seed)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(group))
	for k := range group {
		results[k] = measure(s, &records[k])
	}
	return results, nil
}

// leastLate runs until no call is too late, at most again times more, and returns the results of the run
// in which the calls were least late, whatever came of them.
func leastLate(again int, once func() ([]result, error)) ([]result, error) {
	best, err := once()
	for range again {
		if err != nil || latest(best) <= tooLate {
			break
		}
		var results []result
		if results, err = once(); latest(results) < latest(best) {
			best = results
		}
	}
	return best, err
}

func latest(results []result) time.Duration {
	var most time.Duration
	for _, r := range results {
		most = max(most, r.late)
	}
	return most
}

// reached reports whether stagger reached all that it should. What could not be judged was not reached.
func (t *tally) reached() bool {
	for i, c := range t.who {
		if j := t.results[i].judgement(); c.ours && (j == miss || j == void) {
			return false
		}
	}
	return true
}
