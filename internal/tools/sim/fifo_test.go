// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFIFO(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			f     fifo[int]
			model []int
		)
		pushed := 0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 100).Draw(t, "push") {
				f.push(pushed)
				model = append(model, pushed)
				pushed++
			}
			if rapid.Bool().Draw(t, "remove") {
				odd := func(n int) bool { return n%2 == 1 }
				f.remove(odd)
				model = slices.DeleteFunc(model, odd)
			}
			for range rapid.IntRange(0, len(model)).Draw(t, "pop back") {
				if got := f.popBack(); got != model[len(model)-1] {
					t.Fatalf("got %d from the back; want %d", got, model[len(model)-1])
				}
				model = model[:len(model)-1]
			}
			for range rapid.IntRange(0, len(model)).Draw(t, "pop") {
				if *f.front() != model[0] || *f.back() != model[len(model)-1] {
					t.Fatalf("from %d to %d; want %v", *f.front(), *f.back(), model)
				}
				if got := f.pop(); got != model[0] {
					t.Fatalf("got %d; want %d", got, model[0])
				}
				model = model[1:]
			}
			if f.len() != len(model) {
				t.Fatalf("%d in the queue; want %d", f.len(), len(model))
			}
		}
	})
}

func TestFIFOMemory(t *testing.T) {
	t.Parallel()
	var f fifo[int]
	for i := range 10_000 {
		if f.push(i); i >= 10 {
			f.pop()
		}
	}
	if n := cap(f.list); n > 256 {
		t.Errorf("memory for %d values after 10,000; want little more than for the 10 that are there", n)
	}
}
