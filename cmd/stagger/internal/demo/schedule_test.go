// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"slices"
	"testing"
)

func TestTheSameSeedGivesTheSameCalls(t *testing.T) {
	t.Parallel()
	d := newDay(1)
	one, again, other := schedule(d, 7), schedule(d, 7), schedule(d, 8)
	if !slices.Equal(one, again) {
		t.Error("two schedules of one seed differ")
	}
	if slices.Equal(one, other) {
		t.Error("the schedules of two seeds are the same")
	}
}

func TestCallsArriveInOrderAtTheRateOfTheirPhase(t *testing.T) {
	t.Parallel()
	d := newDay(20) // many calls, so that chance evens out
	calls := schedule(d, 1)
	created := 0
	for i, c := range calls {
		if i > 0 && c.at < calls[i-1].at {
			t.Fatalf("call %d at %v after one at %v", i, c.at, calls[i-1].at)
		}
		if c.order {
			created++
		}
	}
	if got := ratio(created, len(calls)); math.Abs(got-orderShare) > 0.005 {
		t.Errorf("%.4f of the calls create an order; want about %v", got, orderShare)
	}
	for _, p := range d.phases {
		if p.label == "" {
			continue
		}
		from, to := d.span(p.label)
		n := 0
		for _, c := range calls {
			if from <= c.at && c.at < to {
				n++
			}
		}
		want := p.load * d.fleet.capacity() * p.length.Seconds()
		if math.Abs(float64(n)-want) > 4*math.Sqrt(want) { // four standard deviations
			t.Errorf("%s: %d calls; want about %.0f", p.label, n, want)
		}
	}
}
