// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// item is a value of a table.
type item struct {
	Use

	n int
}

// recent is a table as one would write it without a care for time: the keys in the order of their uses.
type recent struct {
	most int
	keys []int
}

func (r *recent) use(key int) bool {
	at := slices.Index(r.keys, key)
	if at >= 0 {
		r.keys = append(slices.Delete(r.keys, at, at+1), key)
	}
	return at >= 0
}

func (r *recent) insert(key int) (left []int) {
	if r.use(key) {
		return nil
	}
	if len(r.keys) == r.most {
		eighth := max(r.most/8, 1)
		left, r.keys = r.keys[:eighth:eighth], r.keys[eighth:]
	}
	r.keys = append(r.keys, key)
	return left
}

// What leaves is the eighth that was used least recently. Of several values that were used since the last insertion, any may count as the oldest: here
// each use is followed by an insertion.
func TestTable_LeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		most := 1 + random.IntN(24)
		got := Table[int, *item]{Most: most}
		want := recent{most: most}
		next := 1000
		insert := func(key int) {
			there, values := got.Insert(key, &item{n: key})
			var left []int
			for _, value := range values {
				left = append(left, value.n)
			}
			gone := want.insert(key)
			if there == nil || there.n != key || !slices.Equal(left, gone) {
				t.Fatalf("seed %d: of at most %d, %v have left for %d; want %v", seed, most, left, key, gone)
			}
		}
		for range 500 {
			switch key := random.IntN(36); random.IntN(4) {
			case 0:
				got.remove(key)
				want.keys = slices.DeleteFunc(want.keys, func(k int) bool { return k == key })
			case 1:
				insert(key)
				next++
				insert(next)
			default:
				found := got.Find(key)
				if is := want.use(key); (found != nil) != is {
					t.Fatalf("seed %d: %d found: %v; want %v", seed, key, found != nil, is)
				}
				next++
				insert(next)
			}
		}
	}
}

func TestTable_Concurrent(t *testing.T) {
	t.Parallel()
	kept := Table[int, *item]{Most: 100}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 3000 {
				key := n * (g + 1) % 250
				if found := kept.Find(key); found != nil && found.n != key {
					t.Errorf("%d under %d", found.n, key)
				}
				there, _ := kept.Insert(key, &item{n: key})
				kept.Touch(there)
				if n%7 == 0 {
					kept.remove(key)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for key, value := range kept.All() {
		n++
		if value.n != key {
			t.Errorf("%d under %d", value.n, key)
		}
	}
	if n > 100 || n != kept.n {
		t.Errorf("%d values, counted as %d; want 100 at most", n, kept.n)
	}
}
