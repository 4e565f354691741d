// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package tried

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBackends(t *testing.T) {
	t.Parallel()
	used := func(backends ...int) *Backends[int] {
		r := new(Backends[int])
		for _, b := range backends {
			r.claim([]int{b}, last)
		}
		return r
	}
	t.Run("a first attempt", func(t *testing.T) {
		t.Parallel()
		r := used()
		if !r.ClaimFirst(0) || r.ClaimFirst(1) || r.ClaimFirst(0) || r.n != 1 {
			t.Errorf("want true for the first backend alone; knows %v", r.used[:r.n])
		}
	})
	t.Run("the oldest is the one used longest ago", func(t *testing.T) {
		t.Parallel()
		r := used(0, 1, 2)
		var order []int
		for range 7 {
			order = append(order, r.claim([]int{2, 0, 1}, last))
		}
		if want := []int{1, 2, 0, 1, 2, 0, 1}; !slices.Equal(order, want) {
			t.Errorf("claimed picks %v, want %v", order, want)
		}
	})
	t.Run("the oldest of those picked", func(t *testing.T) {
		t.Parallel()
		if i := used(0, 1, 2).claim([]int{2, 1, 1}, last); i != 1 {
			t.Errorf("claimed pick %d, want 1: its backend was used before that of pick 0", i)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		r := used(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		if r.n != MaxBackends || !slices.Equal(r.used[:], []int{2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("knows %v, want the last %d in order", r.used[:r.n], MaxBackends)
		}
		if i := r.claim([]int{2, 1}, last); i != 1 {
			t.Errorf("claimed pick %d, want 1: a forgotten backend is as one not used", i)
		}
	})
	t.Run("attempts that start together part", func(t *testing.T) {
		t.Parallel()
		r := used()
		var firsts, others atomic.Int32
		var wg sync.WaitGroup
		for range MaxBackends {
			wg.Go(func() {
				if r.ClaimFirst(0) {
					firsts.Add(1)
					return
				}
				others.Add(int32(r.claim([]int{0, 1, 2, 3, 4, 5, 6, 7}, last)))
			})
		}
		wg.Wait()
		if first, other := firsts.Load(), others.Load(); first != 1 || other != 1+2+3+4+5+6+7 {
			t.Errorf("%d are the first, the others' sum is %d; want 1, and each of the other backends once", first, other)
		}
	})
}

// last is a random number that is always the greatest possible.
func last(n int) int { return n - 1 }

func TestSearch(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		used   []int
		first  int
		ready  int
		picks  []int // the policy's later picks; none after the last
		chosen int
		made   int
	}{
		"another backend":                 {[]int{0}, 0, 4, []int{0, 0, 2}, 3, 3},
		"any of a rotation":               {[]int{0}, 0, 4, []int{1, 2, 3, 0}, 3, 3},
		"of a rotation, not the used":     {[]int{0, 3}, 1, 4, []int{2, 3, 0, 1}, 1, 3},
		"as often as the policy picks it": {[]int{0}, 1, 3, []int{1, 0, 2}, 1, 2},
		"after a rotation of used ones":   {[]int{0, 1}, 0, 3, []int{1, 0, 1, 2, 0}, 4, 4},
		"the policy stops early":          {[]int{0}, 0, 4, []int{1, 2}, 2, 2},
		"one backend only":                {[]int{0}, 0, 1, []int{0, 0}, 0, 0},
		"all tried, the oldest":           {[]int{1, 0}, 0, 2, []int{0, 1, 0}, 2, 2},
		"all tried, the first":            {[]int{0, 1}, 0, 2, []int{1}, 0, 1},
		"the policy names no more":        {[]int{0, 1, 2}, 2, 4, []int{1}, 1, 1},
		"more ready than the policy says": {[]int{0}, 0, 4, slices.Repeat([]int{0}, 99), 0, MaxPicks - 1},
		"a large fleet":                   {[]int{0}, 0, 1000, slices.Repeat([]int{1}, 999), MaxRotation - 1, MaxRotation - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Backends[int]
			for _, b := range row.used {
				r.claim([]int{b}, last)
			}
			made := 0
			chosen := r.Search(row.first, row.ready, last, func() (int, bool) {
				if made == len(row.picks) {
					return 0, false
				}
				made++
				return row.picks[made-1], true
			})
			if chosen != row.chosen || made != row.made {
				t.Errorf("pick %d of %d further ones; want %d of %d", chosen, made, row.chosen, row.made)
			}
			if last := append([]int{row.first}, row.picks...)[chosen]; r.used[r.n-1] != last {
				t.Errorf("used last is %d; want %d, where the attempt goes", r.used[r.n-1], last)
			}
		})
	}
}
