// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type recorder struct{ seen []uint32 }

func (r *recorder) handle(_ eventKind, number uint32) { r.seen = append(r.seen, number) }

// Work of years behind work of years ends no earlier than that.
func TestEventQueueEndOfTime(t *testing.T) {
	t.Parallel()
	q := eventQueue{now: math.MaxInt64 - 1}
	q.after(time.Duration(longest), new(recorder), 0, 0)
	if q.next(); q.now != math.MaxInt64 {
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
		for q.next() {
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
