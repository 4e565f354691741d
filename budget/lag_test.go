// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Goroutines whose clocks lag cannot take more than all calls and the reserve of a window earn, and
// what they earn is not lost while it is in the window.
func TestRatioLagGrantsNothingExtra(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, m := drawn(t)
		b.Start(t0)
		m.calls[0]++
		latest := t0
		lagging := func(t *rapid.T) time.Duration {
			latest += m.width * time.Duration(rapid.IntRange(0, 8).Draw(t, "tenths of a slot")) / 10
			lag := m.width * time.Duration(rapid.IntRange(0, 30).Draw(t, "lag in tenths of a slot")) / 10
			now := latest - lag
			if now < t0 {
				return t0
			}
			return now
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				now := lagging(t)
				b.Start(now)
				m.calls[m.epoch(now)]++
			},
			"withdraw": func(t *rapid.T) {
				p, ok := b.Withdraw(lagging(t), charge(failure))
				if !ok {
					return
				}
				m.spent[m.epoch(p.At)] += m.price(failure)
				if limit, net := m.limit(m.epoch(p.At)); net > limit {
					t.Fatalf("net spending %d above %d", net, limit)
				}
			},
			"": func(t *rapid.T) {
				want := float64(max(m.balance(m.epoch(latest)), 0)) / 1e6
				if got := b.Balance(latest); got != want {
					t.Fatalf("balance %v; want %v", got, want)
				}
			},
		})
	})
}
