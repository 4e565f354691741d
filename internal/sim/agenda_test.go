// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/policy"
)

type diary struct{ seen []uint32 }

func (d *diary) act(_ what, number uint32) { d.seen = append(d.seen, number) }

func TestEventsHappenInTheOrderOfTimeAndThenAsTheyWerePutDown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		delays := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 200).Draw(t, "delays")
		var (
			a agenda
			d diary
		)
		for i, delay := range delays {
			a.in(time.Duration(delay), &d, 0, uint32(i))
		}
		for a.next() {
		}
		want := make([]uint32, len(delays))
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortStableFunc(want, func(x, y uint32) int { return delays[x] - delays[y] })
		if !slices.Equal(d.seen, want) {
			t.Fatalf("delays %v: order %v; want %v", delays, d.seen, want)
		}
	})
}

func TestDeadlinesOfOneLinkEndTheirCallsInTimeWhateverTheirOrder(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue, s.Services[0].Workers = 0, 1
	s.Phases[0].Faults = []Fault{{Service: "shop", Hang: true}}
	w, err := build(s, &Variant{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.enter()
	l := w.sources[0].link
	l.source = nil
	limits := []time.Duration{3e8, 1e8, 2e8, 4e8, 1e8, 5e7, 5e8}
	calls := make([]deadline, len(limits))
	for i, limit := range limits {
		c := l.begin(0, nil, limit)
		calls[i] = deadline{call: c, life: c.life}
		c.first()
	}
	calls[3].call.stop(policy.ReasonCancelled, cancelled)
	for w.next() {
		for i, c := range calls {
			want := w.now >= limits[i] || i == 3
			if late := w.now > limits[i]; c.over() != want && (late || c.over()) {
				t.Fatalf("at %v: call with limit %v over: %v", w.now, limits[i], c.over())
			}
		}
	}
	for i, c := range calls {
		if !c.over() {
			t.Errorf("the call with limit %v has not ended", limits[i])
		}
	}
}
