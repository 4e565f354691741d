// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// locked is the plain form of a budget, to compare with: one lock for everything.
type locked struct {
	budget.Budget

	mu     sync.Mutex
	tokens float64
}

func (b *locked) Start(time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+0.1, 100)
}

func (b *locked) Finish(time.Duration, budget.End) {}

// calls is how long n calls take that need no extra attempt, in so many goroutines.
func calls(b budget.Budget, goroutines, n int) time.Duration {
	var wg sync.WaitGroup
	begin := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			now := budget.Now() + time.Duration(g)*time.Millisecond // once: to read the clock would cost more than the rest
			for range n/goroutines + 1 {
				now += time.Microsecond // or all calls would meet in one shard
				b.Start(now)
				b.Finish(now, budget.EndAtOnce)
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

// BenchmarkCall is what a budget costs a call that needs no extra attempt, alone and as a part of what a
// bucket with one lock costs in the same run.
func BenchmarkCall(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(kinds(b))) {
		for _, goroutines := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				one, lock := kinds(b)[name], &locked{Budget: budget.Empty}
				b.ResetTimer()
				took := calls(one, goroutines, b.N)
				b.StopTimer()
				b.ReportMetric(float64(took)/float64(calls(lock, goroutines, b.N)), "x/mutex")
			})
		}
	}
}

// BenchmarkWithdraw is what an extra attempt costs that is granted and succeeds, and one that is
// refused.
func BenchmarkWithdraw(b *testing.B) {
	for name, one := range kinds(b) {
		b.Run("granted/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p, ok := one.Withdraw(t0, charge(failure)); ok {
					one.Settle(t0, p, true)
				}
			}
		})
	}
	b.Run("refused/ratio", func(b *testing.B) {
		one := ratio(b, 10, 0)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one.Withdraw(t0, charge(failure))
			}
		})
	})
}

// BenchmarkFleet is what a budget costs that leases its reserve, as a part of what one with a local reserve costs in the
// same run: the median of parts that are measured in turn.
func BenchmarkFleet(b *testing.B) {
	const n = 10_000
	took := func(one *budget.Ratio, op func(*budget.Ratio)) time.Duration {
		begin := time.Now()
		for range n {
			op(one)
		}
		return time.Since(begin)
	}
	start := func(one *budget.Ratio) { one.Start(t0) }
	withdraw := func(one *budget.Ratio) {
		if p, ok := one.Withdraw(t0, charge(failure)); ok {
			one.Return(t0, p)
		}
	}
	for name, row := range map[string]struct {
		op    func(*budget.Ratio)
		calls int // that have earned
	}{
		"start":                      {start, 1},
		"withdraw what calls earned": {withdraw, 100},
		"withdraw what is leased":    {withdraw, 1},
	} {
		op := row.op
		b.Run(name, func(b *testing.B) {
			fleet := pools{}
			leased, err := budget.NewFleetRatio(fleetConfig(), fleet)
			if err != nil {
				b.Fatal(err)
			}
			local := ratio(b, 10, 1)
			for range 3 { // the first report; what a call waits for, and what it gives back
				if p, ok := leased.Withdraw(t0, charge(failure)); ok {
					fleet.answer("orders", t0, 5)
					leased.Confirm(t0, p)
					leased.Return(t0, p)
				}
			}
			if leased.Balance(t0) < 1 {
				b.Fatal("nothing is leased")
			}
			for range row.calls {
				local.Start(t0)
				leased.Start(t0)
			}
			var times, parts []float64
			for b.Loop() {
				base := took(local, op)
				own := took(leased, op)
				times, parts = append(times, float64(own)/n), append(parts, float64(own)/float64(base))
			}
			slices.Sort(times)
			slices.Sort(parts)
			b.ReportMetric(times[len(times)/2], "ns/call")
			b.ReportMetric(parts[len(parts)/2], "x/local")
		})
	}
}
