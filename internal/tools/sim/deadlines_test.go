// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// The calls of one link end in time, whatever the order of their deadlines.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue, s.Services[0].Workers = 0, 1
	s.Phases[0].Faults = []Fault{{Service: "shop", Hang: true}}
	w, err := newWorld(s, &Variant{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.enterPhase()
	l := w.fleets[0].links[0]
	l.fleet = nil
	limits := []time.Duration{3e8, 1e8, 2e8, 4e8, 1e8, 5e7, 5e8}
	calls := make([]callRef, len(limits))
	for i, limit := range limits {
		c := l.newCall(0, nil, limit)
		calls[i] = c.ref()
		c.begin()
	}
	calls[3].call.stop(policy.ReasonCancelled, answerCancelled)
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
	if len(w.free) != len(calls) {
		t.Errorf("memory of %d calls is free; want that of all %d", len(w.free), len(calls))
	}
}
