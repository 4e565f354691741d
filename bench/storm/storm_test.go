// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"
)

// sketch is a storm that is easy to reckon with: a second of each kind.
func sketch() storm {
	return storm{name: "sketch", phases: []phase{
		{kind: leadIn, length: time.Second, load: normal},
		{kind: trouble, length: time.Second, load: pulse},
		{kind: after, length: time.Second, load: normal},
	}}
}

func TestAStormCountsFromTheTroubleAndRecoversAfterIt(t *testing.T) {
	t.Parallel()
	s := sketch()
	if s.from() != time.Second || s.over() != 2*time.Second || s.length() != 3*time.Second {
		t.Errorf("from %v, over at %v, length %v; want 1s, 2s, 3s", s.from(), s.over(), s.length())
	}
	s.phases = s.phases[:2]
	if s.over() != s.length() {
		t.Errorf("a storm that ends in trouble is over at %v; want %v", s.over(), s.length())
	}
}

func TestCapacityIsOfAllBackendsTogether(t *testing.T) {
	t.Parallel()
	if got := (storm{}).shape().capacity(); got != 1000 {
		t.Errorf("capacity %v; want 1000 requests per second", got)
	}
}

func TestAFullFormTakesAtMostSevenMinutes(t *testing.T) {
	t.Parallel()
	s, err := parse(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	all := storms()
	if one, two := planned(all[:1], 10, 5), planned(all[:1], 11, 5); one != 2*all[0].length() || two != 3*all[0].length() {
		t.Errorf("10 and 11 clients, 5 at a time, take %v and %v; want 2 and 3 times %v", one, two, all[0].length())
	}
	if took := planned(all, len(contenders(1)), s.beside); took > 7*time.Minute {
		t.Errorf("all storms take %v; want at most 7m", took)
	}
}

func TestStormsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range storms() {
		if slices.Contains(names, s.name) || s.what == "" {
			t.Errorf("storm %q: want a name of its own, and a line that says what happens", s.name)
		}
		names = append(names, s.name)
	}
}

func TestTheSameSeedGivesTheSameCalls(t *testing.T) {
	t.Parallel()
	one, again, other := arrivals(sketch(), 1000, 7), arrivals(sketch(), 1000, 7), arrivals(sketch(), 1000, 8)
	if !slices.Equal(one, again) {
		t.Error("the calls of one seed differ")
	}
	if slices.Equal(one, other) {
		t.Error("the calls of two seeds are the same")
	}
}

func TestCallsArriveInOrderAtTheRateOfTheirPhase(t *testing.T) {
	t.Parallel()
	due := arrivals(sketch(), 10_000, 1)
	if !slices.IsSorted(due) {
		t.Error("calls are not in order")
	}
	counts := make([]float64, 3)
	for _, at := range due {
		counts[at/time.Second]++
	}
	for i, want := range []float64{5500, 15_000, 5500} {
		near(t, "calls in a phase", counts[i], want, 400) // more than three standard deviations
	}
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if got < want-by || got > want+by {
		t.Errorf("%s: %.4f; want %v, give or take %v", what, got, want, by)
	}
}
