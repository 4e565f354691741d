// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sets [2]numbers
		var models [2]map[int]bool
		for i := range sets {
			models[i] = map[int]bool{}
			for _, n := range rapid.SliceOf(rapid.IntRange(0, 500)).Draw(t, "numbers") {
				sets[i].add(n)
				models[i][n] = true
			}
		}
		want := 0
		for n := range models[0] {
			if !models[1][n] {
				want++
			}
		}
		if got := sets[0].without(&sets[1]); got != want {
			t.Errorf("%d are in the first alone; want %d", got, want)
		}
	})
}

// The calls that one variant loses and another serves are those of the same arrival.
func TestResultServedBy(t *testing.T) {
	t.Parallel()
	s := crowded(t, Phase{Name: "overload", Length: 5 * time.Second, Load: 1.5})
	s.Variants = append(s.Variants, Variant{Name: "again", Clients: 30})
	r := play(t, s, Options{})
	without, with, again := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0], r.Runs[2].Fleets[0]
	if without.Calls != with.Calls || without.Calls != again.Calls {
		t.Fatalf("%d, %d and %d calls; want the same", without.Calls, with.Calls, again.Calls)
	}
	succeeded := func(f FleetResult) int { return int(f.Success*float64(f.Calls) + 0.5) }
	if got, want := without.ServedBy["with"]-with.ServedBy["without"], succeeded(with)-succeeded(without); got != want || with.ServedBy["without"] == 0 {
		t.Errorf("without admission %v, with it %v: the difference is %d; want %d", without.ServedBy, with.ServedBy, got, want)
	}
	if with.Refused == 0 || with.Refused > with.Reasons["overloaded"] || without.Refused != 0 {
		t.Errorf("%d of %v refused with admission, %d without", with.Refused, with.Reasons, without.Refused)
	}
	s.Variants[1].Set = "" // the same as the first
	if r = play(t, s, Options{}); r.Runs[0].Fleets[0].ServedBy["with"] != 0 {
		t.Errorf("%v are served by the same variant", r.Runs[0].Fleets[0].ServedBy)
	}
	s.Fleets[0].Rate, s.Fleets[0].Think = 0, &Distribution{A: time.Second}
	if r = play(t, s, Options{}); r.Runs[0].Fleets[0].ServedBy != nil {
		t.Error("calls are paired that depend on the answers before")
	}
}
