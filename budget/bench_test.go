// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
)

// No call allocates, with an extra attempt or without. Not parallel: allocations are the process's.
func TestNothingAllocates(t *testing.T) {
	for name, b := range kinds(t) {
		b.Start(t0) // the first call of a ratio budget notes its time
		now := t0
		for what, f := range map[string]func(){
			"Start":  func() { now = (now + time.Millisecond); b.Start(now) },
			"Fail":   func() { b.Fail(now) },
			"Finish": func() { b.Finish(now, budget.AtOnce); b.Finish(now, budget.Failed) },
			"Withdraw and Refund": func() {
				if p, ok := b.Withdraw(now, charge(failure)); ok {
					b.Settle(now, p, true)
				}
			},
			"Withdraw and Return": func() {
				if p, ok := b.Withdraw((now + -time.Second), charge(timeout)); ok {
					b.Return(now, p)
				}
			},
			"Balance": func() { _ = b.Balance(now) },
		} {
			if n := testing.AllocsPerRun(1000, f); n != 0 {
				t.Errorf("%s: %s allocates %v times; want 0", name, what, n)
			}
		}
	}
}

// bucket is the plain form of a budget, to compare with: one lock for everything.
type bucket struct {
	budget.Budget

	mu     sync.Mutex
	tokens float64
}

func (b *bucket) Start(time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+0.1, 100)
}

func (b *bucket) Finish(time.Duration, budget.End) {}

// BenchmarkCall is what a budget costs a call that needs no extra attempt.
func BenchmarkCall(b *testing.B) {
	all := kinds(b)
	all["mutex bucket"] = &bucket{Budget: budget.Empty}
	for name, one := range all {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := budget.Now() // once: to read the clock would cost more than what is measured
				for pb.Next() {
					now = (now + time.Microsecond) // or all calls would meet in one shard
					one.Start(now)
					one.Finish(now, budget.AtOnce)
				}
			})
		})
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
