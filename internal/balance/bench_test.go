// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/clock"
)

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

// BenchmarkCall measures the cost of a call without extra attempts.
func BenchmarkCall(b *testing.B) {
	for name, one := range kinds(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := clock.Now()
				for pb.Next() {
					now += time.Microsecond // otherwise all calls would use one shard
					one.Start(now)
					one.Finish(now, EndAtOnce)
				}
			})
		})
	}
}
