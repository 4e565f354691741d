// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What happens, happens in the order of time, and of being scheduled; what comes after the end waits.
func TestQueue(t *testing.T) {
	t.Parallel()
	var (
		q      queue
		chance = rand.New(rand.NewPCG(1, 1))
		last   = event{at: -1}
		ran    int
	)
	for i := range 1000 {
		at := time.Duration(chance.IntN(100))
		q.at(at, func() {
			if q.now != at || at < last.at || at == last.at && uint64(i) < last.order {
				t.Fatalf("event %d of %v at %v, after event %d of %v", i, at, q.now, last.order, last.at)
			}
			last, ran = event{at: at, order: uint64(i)}, ran+1
		})
	}
	q.after(100, func() { t.Error("it is after the end") })
	if q.run(99); ran != 1000 || q.now != 99 {
		t.Errorf("%d of 1000 events happened until %v", ran, q.now)
	}
}
