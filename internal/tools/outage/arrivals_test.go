// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"slices"
	"testing"
	"time"
)

func TestArrivals(t *testing.T) {
	t.Parallel()
	s := pulse()
	one, again, other := Arrivals(s, 7), Arrivals(s, 7), Arrivals(s, 8)
	if !slices.Equal(one, again) {
		t.Error("the calls of one seed differ")
	}
	if slices.Equal(one, other) {
		t.Error("the calls of two seeds are the same")
	}
	s.Fleets[0].Rate = 10_000 // many, so that chance evens out
	calls := Arrivals(s, 1)
	counts := make([]int, len(s.Phases))
	for i, c := range calls {
		if i > 0 && c.At < calls[i-1].At || c.Method != method {
			t.Fatalf("call %d is %+v, after %+v", i, c, calls[i-1])
		}
		counts[c.At/time.Second]++
	}
	for i, want := range []int{5000, 15_000, 5000} {
		if got := counts[i]; got < want-400 || got > want+400 { // more than three standard deviations
			t.Errorf("%d calls in phase %d; want about %d", got, i, want)
		}
	}
}
