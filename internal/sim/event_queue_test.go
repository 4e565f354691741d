// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/policy"
)

type recorder struct{ seen []uint32 }

func (r *recorder) handle(_ eventKind, number uint32) { r.seen = append(r.seen, number) }

// Work of years that waits behind work of years ends no earlier than after both.
func TestEventQueueEndOfTime(t *testing.T) {
	t.Parallel()
	q := eventQueue{now: math.MaxInt64 - 1}
	q.after(time.Duration(longest), new(recorder), 0, 0)
	if q.handleNext(); q.now != math.MaxInt64 {
		t.Errorf("now %d; want the end of time", q.now)
	}
}

func TestEventQueueOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		delays := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 200).Draw(t, "delays")
		var (
			q eventQueue
			r recorder
		)
		for i, delay := range delays {
			q.after(time.Duration(delay), &r, 0, uint32(i))
		}
		for q.handleNext() {
		}
		want := make([]uint32, len(delays))
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortStableFunc(want, func(x, y uint32) int { return delays[x] - delays[y] })
		if !slices.Equal(r.seen, want) {
			t.Fatalf("delays %v: order %v; want %v", delays, r.seen, want)
		}
	})
}

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
		c.startCall()
	}
	calls[3].call.stopCall(policy.ReasonCancelled, answerCancelled)
	for w.handleNext() {
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

// Distributions have the configured mean, and the other configured parameter.
func TestDistributionMoments(t *testing.T) {
	t.Parallel()
	const n = 100_000
	bimodal := Distribution{
		Shape: ShapeBimodal, Part: 0.2, Usual: &Distribution{A: 10 * time.Millisecond},
		Slow: &Distribution{Shape: ShapeExponential, A: 344_269 * time.Microsecond},
	}
	for _, row := range []struct {
		d        Distribution
		quantile float64
		want     time.Duration // of the quantile
	}{
		{Distribution{Shape: ShapeFixed, A: 20 * time.Millisecond}, 0.5, 20 * time.Millisecond},
		{Distribution{Shape: ShapeExponential, A: 20 * time.Millisecond}, 0.5, 13_863 * time.Microsecond},
		{Distribution{Shape: ShapeNormal, A: 20 * time.Millisecond, B: 2 * time.Millisecond}, 0.8413, 22 * time.Millisecond},
		{Distribution{Shape: ShapeLogNormal, A: 20 * time.Millisecond, B: 100 * time.Millisecond}, 0.99, 100 * time.Millisecond},
		{bimodal, 0.5, 10 * time.Millisecond},
		{bimodal, 0.9, 238_629 * time.Microsecond}, // half of the slow ones are longer
	} {
		random := random(1, 2)
		list := make([]time.Duration, n)
		var sum float64
		for i := range list {
			list[i] = row.d.Sample(random)
			sum += float64(list[i])
		}
		slices.Sort(list)
		if got, want := sum/n, float64(row.d.Mean()); math.Abs(got-want) > 0.02*want {
			t.Errorf("%v: mean %v; want %v", row.d, time.Duration(got), row.d.Mean())
		}
		if got := list[int(row.quantile*n)-1]; math.Abs(float64(got-row.want)) > 0.03*float64(row.want) {
			t.Errorf("%v: quantile %v is %v; want %v", row.d, row.quantile, got, row.want)
		}
	}
}
