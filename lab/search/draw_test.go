// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

const testSeed = 7

// drawn draws n scenarios.
func drawSome(t *testing.T, n int) []*drawn {
	t.Helper()
	list := make([]*drawn, n)
	for i := range list {
		d, err := draw(t.Context(), testSeed, i)
		if err != nil {
			t.Fatalf("scenario %d: %v", i, err)
		}
		list[i] = d
	}
	return list
}

func TestDraw_Repeats(t *testing.T) {
	t.Parallel()
	for i, d := range drawSome(t, 10) {
		again, err := draw(t.Context(), testSeed, i)
		if err != nil {
			t.Fatal(err)
		}
		again.Scenario.Policies, d.Scenario.Policies = nil, nil // read
		if !reflect.DeepEqual(d, again) {
			t.Errorf("scenario %d:\n%+v\nwant, as at first,\n%+v", i, again, d)
		}
	}
}

// Both ends of each dimension are drawn.
func TestDraw_Dimensions(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	list := drawSome(t, 150)
	for _, d := range list {
		s := d.Scenario
		last := s.Services[len(s.Services)-1]
		for what, is := range map[string]bool{
			"one process":           s.Fleets[0].Clients == 1,
			"200 processes":         s.Fleets[0].Clients > 200,
			"a call in ten seconds": s.Fleets[0].Rate/float64(s.Fleets[0].Clients) < 0.2,
			"one backend":           last.Backends == 1,
			"ten backends":          last.Backends >= 10,
			"drops abandoned":       last.Abandoned == sim.AbandonedDrop,
			"no queue":              last.Queue == 0,
			"bimodal":               last.Time.Shape == sim.ShapeBimodal,
			"newest first":          last.Order == sim.OrderLIFO,
			"heavy tail":            last.Time.Shape == sim.ShapeLogNormal,
			"deadline below 200 ms": s.Fleets[0].Calls[0].Deadline < 200*time.Millisecond,
			"deadline of seconds":   s.Fleets[0].Calls[0].Deadline > 5*time.Second,
			"four hops":             len(s.Services) == 4,
			"low load":              d.LowLoad,
			"warned":                len(d.Warned) > 0,
		} {
			if is {
				seen[what]++
			} else if _, ok := seen[what]; !ok {
				seen[what] = 0
			}
		}
		for _, p := range s.Phases {
			if p.Load > 2.5 {
				seen["load over 2.5"]++
			}
			for _, f := range p.Faults {
				for what, is := range map[string]bool{"down": f.Down, "hang": f.Hang, "flaky": f.Flaky > 0, "slower": f.Slower > 1, "slow tail": f.Slow != nil, "workers": f.Workers != nil} {
					if is {
						seen[what]++
					}
				}
			}
		}
	}
	for what, n := range seen {
		if n == 0 {
			t.Errorf("%s: in none of %d scenarios", what, len(list))
		}
	}
	if most := len(list) / 10; seen["warned"] > most {
		t.Errorf("%d of %d scenarios are settings that are warned of; want at most %d", seen["warned"], len(list), most)
	}
	for _, what := range []string{"load over 2.5", "down", "hang", "flaky", "slower", "slow tail", "workers"} {
		if seen[what] == 0 {
			t.Errorf("%s: in none of %d scenarios", what, len(list))
		}
	}
}
