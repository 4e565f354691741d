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
			r.Claim(b)
		}
		return r
	}
	t.Run("claimed once", func(t *testing.T) {
		t.Parallel()
		r := used()
		if !r.Claim(0) || !r.Claim(1) || r.Claim(0) || r.Claim(1) {
			t.Error("want true for each backend once")
		}
	})
	t.Run("the oldest is the one used longest ago", func(t *testing.T) {
		t.Parallel()
		r := used(0, 1, 2)
		var order []int
		for range 7 {
			order = append(order, r.claimOldest([]int{2, 0, 1}))
		}
		if want := []int{1, 2, 0, 1, 2, 0, 1}; !slices.Equal(order, want) {
			t.Errorf("claimed picks %v, want %v", order, want)
		}
	})
	t.Run("the oldest of those picked", func(t *testing.T) {
		t.Parallel()
		if i := used(0, 1, 2).claimOldest([]int{2, 1, 1}); i != 1 {
			t.Errorf("claimed pick %d, want 1: its backend was used before that of pick 0", i)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		r := used(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		if r.n != MaxBackends || !slices.Equal(r.used[:], []int{2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("knows %v, want the last %d in order", r.used[:r.n], MaxBackends)
		}
		if i := r.claimOldest([]int{2, 1}); i != 1 {
			t.Errorf("claimed pick %d, want 1: a forgotten backend is the oldest", i)
		}
	})
	t.Run("attempts that start together part", func(t *testing.T) {
		t.Parallel()
		r := used()
		var claims atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if r.Claim(7) {
					claims.Add(1)
				}
			})
		}
		wg.Wait()
		if n := claims.Load(); n != 1 {
			t.Errorf("%d of 16 attempts claimed the backend, want 1", n)
		}
	})
}

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
		"the next":                        {[]int{0}, 0, 4, []int{1, 2}, 1, 1},
		"one backend only":                {[]int{0}, 0, 1, []int{0, 0}, 0, 0},
		"all tried, the oldest":           {[]int{1, 0}, 0, 2, []int{0, 1, 0}, 2, 2},
		"all tried, the first":            {[]int{0, 1}, 0, 2, []int{1}, 0, 1},
		"the policy names no more":        {[]int{0, 1, 2}, 2, 4, []int{1}, 1, 1},
		"more ready than the policy says": {[]int{0}, 0, 4, slices.Repeat([]int{0}, 99), 0, MaxPicks - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Backends[int]
			for _, b := range row.used {
				r.Claim(b)
			}
			made := 0
			chosen := r.Search(row.first, row.ready, func() (int, bool) {
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
