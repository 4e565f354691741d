// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"testing"
	"time"
)

func TestWindowTakesAnyTime(t *testing.T) {
	t.Parallel()
	for _, times := range [][]time.Duration{
		{math.MinInt64, math.MaxInt64},
		{math.MaxInt64, math.MinInt64},
		{math.MinInt64, 0, math.MaxInt64},
		{-1, 0, 1},
		{math.MaxInt64 - 1, math.MaxInt64},
	} {
		w := window{width: time.Second}
		for _, now := range times {
			w.advance(now, 0)
			if w.slotEnd() <= w.start && w.start < math.MaxInt64 {
				t.Errorf("%v: at %v the newest slot is from %d to %d", times, now, w.start, w.slotEnd())
			}
			for _, then := range times {
				if s := w.at(then); then >= w.start && s != &w.slots[0] {
					t.Errorf("%v: %d is not in the newest slot at %v", times, then, now)
				}
			}
		}
	}
}

func TestWindowSlides(t *testing.T) {
	t.Parallel()
	w := window{width: time.Second}
	for i := range 30 {
		w.advance(time.Duration(i)*time.Second, int64(i)) // the calls of the slot before
		if got, _ := w.sum(); got != int64(min(i, slots-1)) {
			t.Errorf("second %d: %d calls; want %d", i, got, min(i, slots-1))
		}
		for back := range 12 {
			s := w.at(time.Duration(i-back) * time.Second)
			if back >= slots && s != nil || back < slots && s != &w.slots[back] {
				t.Errorf("second %d: %d seconds ago is in the wrong slot", i, back)
			}
		}
	}
	w.advance(time.Hour, 30)
	if got, _ := w.sum(); got != 0 {
		t.Errorf("%d calls after an hour; want none", got)
	}
}

// Calls expire at most a slot early, and never late.
func TestWindowResize(t *testing.T) {
	t.Parallel()
	for _, widths := range [][2]time.Duration{{1000, 500}, {500, 1000}, {1000, 1000}, {1000, 333}, {333, 1000}, {100, 6000}, {6000, 100}} {
		for slot := range slots {
			age := time.Duration(slot) * widths[0]
			w := window{width: widths[0]}
			w.advance(0, 1)
			w.advance(age, 1)
			w.resize(widths[1])
			for now := age; now < 100_000; now += 10 {
				w.advance(now, 1)
				calls, _ := w.sum()
				if calls == 1 && now >= slots*widths[1] {
					t.Fatalf("%v, %d slots old: counts for %v", widths, slot, now)
				}
				if calls == 0 {
					if early := (slots-1)*widths[1] - now; early > 0 && now > age {
						t.Fatalf("%v, %d slots old: gone after %v", widths, slot, now)
					}
					break
				}
			}
		}
	}
}
