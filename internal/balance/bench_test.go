// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/clock"
)

// locked is the simplest budget, for comparison: one lock for everything.
type locked struct {
	Budget

	mu     sync.Mutex
	tokens float64
}

func (b *locked) Start(time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+0.1, 100)
}

func (b *locked) Finish(time.Duration, End) {}

// calls returns how long n calls without extra attempts take, in so many goroutines.
func calls(b Budget, goroutines, n int) time.Duration {
	var wg sync.WaitGroup
	begin := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			now := clock.Now() + time.Duration(g)*time.Millisecond // once: reading the clock would cost more than the rest
			for range n/goroutines + 1 {
				now += time.Microsecond // otherwise all calls would use one shard
				b.Start(now)
				b.Finish(now, EndAtOnce)
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

// BenchmarkCall measures the cost of a call without extra attempts, alone and relative to a bucket with one lock in the same
// run.
func BenchmarkCall(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(kinds(b))) {
		for _, goroutines := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				one, lock := kinds(b)[name], &locked{Budget: Empty}
				b.ResetTimer()
				took := calls(one, goroutines, b.N)
				b.StopTimer()
				b.ReportMetric(float64(took)/float64(calls(lock, goroutines, b.N)), "x/mutex")
			})
		}
	}
}

// BenchmarkWithdraw measures the cost of an extra attempt that is granted and succeeds, and of one that is refused.
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
