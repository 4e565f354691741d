// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestNeat(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]time.Duration{
		0:                       time.Millisecond,
		1400 * time.Microsecond: time.Millisecond,
		99 * time.Millisecond:   99 * time.Millisecond,
		123 * time.Millisecond:  120 * time.Millisecond,
		2720 * time.Millisecond: 2700 * time.Millisecond,
	} {
		if got := neat(in); got != want {
			t.Errorf("neat(%v) = %v; want %v", in, got, want)
		}
	}
}

func TestChance(t *testing.T) {
	t.Parallel()
	c, counts, weighted := newChance(1, 1), map[int]int{}, make([]int, 3)
	const n = 10_000
	for range n {
		counts[c.count(1, 3)]++
		weighted[c.one(1, 0, 3)]++
		if f := c.log(0.5, 8); f < 0.5 || f > 8 {
			t.Fatalf("log(0.5, 8) = %v", f)
		}
	}
	if counts[1]+counts[2]+counts[3] != n || counts[1] < counts[2] || counts[2] < counts[3] || counts[3] == 0 {
		t.Errorf("count(1, 3): %v; want each, and the smaller the more often", counts)
	}
	if weighted[1] != 0 || weighted[2] < 2*weighted[0] || weighted[0] == 0 {
		t.Errorf("one(1, 0, 3): %v; want three times as many of the last as of the first", weighted)
	}
}
