// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// report is what came out of a storm.
type report struct {
	storm   storm
	names   []string
	ours    []bool
	results []result
}

// run plays a storm for all contenders, some at a time, and judges them. The first contender is the
// one without retries.
func run(ctx context.Context, s storm, sh shape, who []contender, seed uint64, beside int) (report, error) {
	r := report{storm: s}
	for i := 0; i < len(who); i += beside {
		group := who[i:min(i+beside, len(who))]
		records, err := play(ctx, s, sh, group, seed)
		if err != nil {
			return report{}, err
		}
		for k, c := range group {
			r.names = append(r.names, c.name)
			r.ours = append(r.ours, c.ours)
			r.results = append(r.results, measure(s, sh.capacity(), &records[k]))
		}
	}
	r.results[0].judgement = unjudged
	for i := 1; i < len(r.results); i++ {
		r.results[i].judgement = s.target.judge(r.results[i], r.results[0])
	}
	return r, nil
}

// reached reports whether stagger reached the target. One that could not be judged was not reached.
func (r report) reached() bool {
	for i, ours := range r.ours {
		if j := r.results[i].judgement; ours && (j == miss || j == void) {
			return false
		}
	}
	return true
}
