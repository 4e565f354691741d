// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"reflect"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// successes returns outcomes that differ only in their success.
func successes(list ...float64) (of []outcome) {
	for _, s := range list {
		of = append(of, outcome{Success: s, PerCall: 1})
	}
	return of
}

func TestJudged(t *testing.T) {
	t.Parallel()
	never := func(list []outcome, which ...int) []outcome {
		for _, i := range which {
			list[i].Never = true
		}
		return list
	}
	for name, row := range map[string]struct {
		none, own   []outcome
		loss        float64
		half, never bool
	}{
		"better, of one seed":                       {successes(0.5), successes(0.7), -0.2, false, false},
		"of five seeds, the mean":                   {successes(1, 1, 1, 1, 1), successes(0.9, 1, 1, 1, 1), 0.02, false, false},
		"paired by seed":                            {successes(0.2, 0.9), successes(0.1, 0.9), 0.05, false, false},
		"no retries played more seeds":              {successes(0.9, 0.1), successes(0.9), 0, false, false},
		"below half":                                {successes(0.8, 0.8), successes(0.1, 0.6), 0.45, true, false},
		"half of next to nothing":                   {successes(0.01), successes(0), 0.01, false, false},
		"never recovers, in most":                   {successes(1, 1, 1), never(successes(1, 1, 1), 0, 2), 0, false, true},
		"never recovers, in few":                    {successes(1, 1, 1), never(successes(1, 1, 1), 0), 0, false, false},
		"never recovers, as without retries":        {never(successes(1), 0), never(successes(1), 0), 0, false, false},
		"never recovers, with no retries in others": {never(successes(1, 1), 1), never(successes(1, 1), 0), 0, false, false},
	} {
		j := &judged{Players: map[string][]outcome{noRetries: row.none, defaultPlayer: row.own}}
		if got := j.loss(defaultPlayer); math.Abs(got-row.loss) > 1e-9 {
			t.Errorf("%s: loss %v; want %v", name, got, row.loss)
		}
		if half, never := j.half(defaultPlayer), j.never(defaultPlayer); half != row.half || never != row.never {
			t.Errorf("%s: below half %v, never recovers %v; want %v, %v", name, half, never, row.half, row.never)
		}
	}
}

func TestDeviation(t *testing.T) {
	t.Parallel()
	j := &judged{Players: map[string][]outcome{noRetries: successes(1, 1, 1, 1), defaultPlayer: successes(0.9, 0.8, 0.9, 0.8)}}
	if got, want := j.deviation(defaultPlayer), math.Sqrt(4*0.05*0.05/3/4); math.Abs(got-want) > 1e-9 {
		t.Errorf("deviation %v; want %v", got, want)
	}
}

// The search must find a client that retries without a limit, with the same result on any number of processors.
func TestSearch(t *testing.T) {
	t.Parallel()
	h := hunt{[]uint64{104}, 30, []string{noRetries, grpcPlayer, "4 attempts"}, 1, 4, func(float64) {}}
	list := must.Get(h.search(t.Context()))(t)
	bad, throttled := count(list, "4 attempts", every), count(list, grpcPlayer, every)
	if bad.Over3 <= throttled.Over3 {
		t.Errorf("4 attempts lose more than 3 points in %d scenarios without a budget, in %d throttled; want more", bad.Over3, throttled.Over3)
	}
	h.n, h.parallel = 4, 1
	again := must.Get(h.search(t.Context()))(t)
	for i, j := range again {
		if !reflect.DeepEqual(j.Players, list[i].Players) {
			t.Errorf("scenario %d: %v on one processor, %v on four", i, j.Players, list[i].Players)
		}
	}
}
