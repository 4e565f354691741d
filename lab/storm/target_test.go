// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

func TestTargetJudge(t *testing.T) {
	t.Parallel()
	back := func(seconds float64) sim.Recovered {
		return sim.Recovered{State: sim.RecoveryReturned, Took: time.Duration(seconds * float64(time.Second))}
	}
	none := sim.Recovered{State: sim.RecoveryNever}
	pulse := target{recovery: 1.5, share: 0.9}
	for name, row := range map[string]struct {
		target     target
		r, without outage.Result
		want       judgement
	}{
		"no target":                 {target{}, outage.Result{}, outage.Result{}, unjudged},
		"success":                   {target{success: 0.995}, outage.Result{Success: 0.995}, outage.Result{}, pass},
		"less success":              {target{success: 0.995}, outage.Result{Success: 0.9949}, outage.Result{}, miss},
		"requests":                  {target{perCall: 1.12}, outage.Result{PerCall: 1.12}, outage.Result{}, pass},
		"more requests":             {target{perCall: 1.12}, outage.Result{PerCall: 1.1201}, outage.Result{}, miss},
		"recovery":                  {pulse, outage.Result{Success: 0.9, Recovery: back(0.75)}, outage.Result{Success: 1, Recovery: back(0.5)}, pass},
		"slower":                    {pulse, outage.Result{Success: 0.9, Recovery: back(0.76)}, outage.Result{Success: 1, Recovery: back(0.5)}, miss},
		"less than its share":       {pulse, outage.Result{Success: 0.89, Recovery: back(0.5)}, outage.Result{Success: 1, Recovery: back(0.5)}, miss},
		"never":                     {pulse, outage.Result{Success: 0.9, Recovery: none}, outage.Result{Success: 1, Recovery: back(0.5)}, miss},
		"never, nor without":        {pulse, outage.Result{Success: 0.9, Recovery: none}, outage.Result{Success: 1, Recovery: none}, pass},
		"better than without":       {pulse, outage.Result{Success: 0.9, Recovery: back(9)}, outage.Result{Success: 1, Recovery: none}, pass},
		"at once, as without":       {pulse, outage.Result{Success: 0.9, Recovery: back(0)}, outage.Result{Success: 1, Recovery: back(0)}, pass},
		"not at once, as without":   {pulse, outage.Result{Success: 0.9, Recovery: back(0.1)}, outage.Result{Success: 1, Recovery: back(0)}, miss},
		"nothing to recover from":   {pulse, outage.Result{Success: 0.9}, outage.Result{Success: 1}, pass},
		"late but good":             {target{success: 0.9}, outage.Result{Success: 1, Late: outage.TooLate}, outage.Result{}, pass},
		"too late to be good":       {target{success: 0.9}, outage.Result{Success: 1, Late: outage.TooLate + 1}, outage.Result{}, void},
		"too late to be bad":        {target{success: 0.9}, outage.Result{Late: outage.TooLate + 1}, outage.Result{}, void},
		"a late reference":          {pulse, outage.Result{Success: 1, Recovery: back(0)}, outage.Result{Late: outage.TooLate + 1}, void},
		"no reference":              {target{success: 0.9}, outage.Result{Success: 1}, outage.Result{Late: outage.TooLate + 1}, pass},
		"all of it, one part fails": {target{success: 0.9, perCall: 2}, outage.Result{Success: 1, PerCall: 3}, outage.Result{}, miss},
	} {
		r := result{Result: row.r}
		r.verdicts = row.target.judge(r, result{Result: row.without})
		if got := r.judgement(); got != row.want {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

func TestTargetString(t *testing.T) {
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
