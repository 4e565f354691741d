// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestATargetIsReachedAtItsEdgeAndMissedBeyond(t *testing.T) {
	t.Parallel()
	back := func(seconds float64) recovery {
		return recovery{returned, time.Duration(seconds * float64(time.Second))}
	}
	none := recovery{state: never}
	pulse := target{recovery: 1.5, share: 0.9}
	for name, row := range map[string]struct {
		target     target
		r, without result
		want       judgement
	}{
		"no target":                 {target{}, result{}, result{}, unjudged},
		"success":                   {target{success: 0.995}, result{success: 0.995}, result{}, pass},
		"less success":              {target{success: 0.995}, result{success: 0.9949}, result{}, miss},
		"requests":                  {target{perCall: 1.12}, result{perCall: 1.12}, result{}, pass},
		"more requests":             {target{perCall: 1.12}, result{perCall: 1.1201}, result{}, miss},
		"recovery":                  {pulse, result{success: 0.9, recovery: back(0.75)}, result{success: 1, recovery: back(0.5)}, pass},
		"slower":                    {pulse, result{success: 0.9, recovery: back(0.76)}, result{success: 1, recovery: back(0.5)}, miss},
		"less than its share":       {pulse, result{success: 0.89, recovery: back(0.5)}, result{success: 1, recovery: back(0.5)}, miss},
		"never":                     {pulse, result{success: 0.9, recovery: none}, result{success: 1, recovery: back(0.5)}, miss},
		"never, nor without":        {pulse, result{success: 0.9, recovery: none}, result{success: 1, recovery: none}, pass},
		"better than without":       {pulse, result{success: 0.9, recovery: back(9)}, result{success: 1, recovery: none}, pass},
		"at once, as without":       {pulse, result{success: 0.9, recovery: back(0)}, result{success: 1, recovery: back(0)}, pass},
		"not at once, as without":   {pulse, result{success: 0.9, recovery: back(0.1)}, result{success: 1, recovery: back(0)}, miss},
		"nothing to recover from":   {pulse, result{success: 0.9}, result{success: 1}, pass},
		"late but good":             {target{success: 0.9}, result{success: 1, late: tooLate}, result{}, pass},
		"too late to be good":       {target{success: 0.9}, result{success: 1, late: tooLate + 1}, result{}, void},
		"too late to be bad":        {target{success: 0.9}, result{late: tooLate + 1}, result{}, void},
		"beside one that was late":  {pulse, result{success: 1, recovery: back(0)}, result{late: tooLate + 1}, void},
		"not beside the late one":   {target{success: 0.9}, result{success: 1}, result{late: tooLate + 1}, pass},
		"all of it, one part fails": {target{success: 0.9, perCall: 2}, result{success: 1, perCall: 3}, result{}, miss},
	} {
		row.r.verdicts = row.target.judge(row.r, row.without)
		if got := row.r.judgement(); got != row.want {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

func TestATargetIsSaidInWords(t *testing.T) {
	t.Parallel()
	for want, tg := range map[string]target{
		"none": {},
		"success at least 99.5 %, at most 1.12 requests per call":                                                 {success: 0.995, perCall: 1.12},
		"time to recover at most 1.5 times that without retries, success at least 0.9 times that without retries": {recovery: 1.5, share: 0.9},
	} {
		if got := tg.String(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
