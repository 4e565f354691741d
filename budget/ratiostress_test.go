// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const goroutines = 64

// together runs f in 64 goroutines and waits for them. Its tests are not parallel: beside other tests
// the goroutines would have one processor, and seldom meet.
func together(f func(g int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for g := range goroutines {
		wg.Go(func() {
			<-begin
			f(g)
		})
	}
	close(begin)
	wg.Wait()
}

// However calls and withdrawals interleave, what was granted in the end is what was earned.
func TestRatioAdmitsExactlyItsLawUnderStress(t *testing.T) {
	const calls = 301
	for range 5 {
		b := ratio(t, 33.3333, 1)
		var admitted, asked atomic.Int64
		withdraw := func(now time.Duration) bool {
			asked.Add(1)
			ok := granted(b, now)
			if ok {
				admitted.Add(1)
			}
			return ok
		}
		together(func(g int) {
			for i := range calls {
				now := at(float64((g+i)%10) + 0.5) // clocks that disagree within the window
				b.Start(now)
				withdraw(now)
			}
		})
		for withdraw(at(9.5)) { // what calls that came after the last refusal have earned
		}
		// 64 · 301 = 19,264 calls of 0.333333, and ten: 6,431.327
		if got := admitted.Load(); got != 6431 {
			t.Errorf("%d admitted; want 6431", got)
		}
		if got := admitted.Load() + int64(b.Denied()); got != asked.Load() {
			t.Errorf("%d admitted and denied; want %d", got, asked.Load())
		}
	}
}

// All goroutines meet at the first call of each new slot: none is lost, and none counted in a slot
// that is gone.
func TestRatioLosesNoCallWhenSlotsTurnOver(t *testing.T) {
	b := ratio(t, 100, 0)
	for second := range 300 {
		now := at(float64(second))
		together(func(int) { b.Start(now) })
		if got, want := b.Balance(now), float64(goroutines*min(second+1, 10)); got != want {
			t.Fatalf("second %d: balance %v; want %v", second, got, want)
		}
	}
}

// Late clocks and early ones write the same slots: the early ones win, and all of their calls count.
func TestRatioKeepsNewCallsBesideOnesAWindowLate(t *testing.T) {
	b := ratio(t, 100, 0)
	b.Start(t0)
	for window := range 50 {
		now := at(float64(10 * (window + 1)))
		together(func(g int) {
			if g%2 == 0 {
				b.Start((now + -10*time.Second)) // the same slot, a window ago
			} else {
				b.Start(now)
			}
		})
		if got := b.Balance(now); got != goroutines/2 {
			t.Fatalf("window %d: balance %v; want %d", window, got, goroutines/2)
		}
	}
}

// Every permit that is given back can be had again, and no more than those.
func TestRatioGivesBackExactlyUnderStress(t *testing.T) {
	b := ratio(t, 10, 10) // 100 tokens, 20 of kind timeout
	var out, grants atomic.Int64
	together(func(g int) {
		for i := range 200 {
			p, ok := b.Withdraw(t0, charge(timeout))
			if !ok {
				continue
			}
			grants.Add(1)
			if n := out.Add(1); n > 20 {
				t.Errorf("%d permits are out; want at most 20", n)
			}
			out.Add(-1)
			b.Return(at(float64((g+i)%9)), p)
		}
	})
	if got := b.Balance(t0); got != 100 {
		t.Errorf("balance %v; want 100", got)
	}
	if got := grants.Load() + int64(b.Denied()); got != 200*goroutines || grants.Load() < 20 {
		t.Errorf("%d granted of %d; want at least 20 of %d", grants.Load(), got, 200*goroutines)
	}
}
