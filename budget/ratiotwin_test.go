// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/budget"
)

// A twin sees the same calls and reloads, and nothing is spent of it: its balance is what the other's
// would be if nothing had been.
func TestRatioIsAsFullAfterAReloadAsBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := func() budget.RatioConfig {
			return budget.RatioConfig{
				Percent: float64(rapid.IntRange(1, 500).Draw(t, "percent")), MinPerSecond: float64(rapid.IntRange(0, 5).Draw(t, "per second")),
				Window: time.Duration(rapid.SampledFrom([]int{1, 3, 10, 60}).Draw(t, "window")) * time.Second, TimeoutCost: 5,
			}
		}
		c := drawn()
		b, err := budget.NewRatio(c)
		twin, _ := budget.NewRatio(c)
		if err != nil {
			t.Fatal(err)
		}
		now, out := t0, []budget.Permit{}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond },
			"start": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "calls") {
					b.Start(now)
					twin.Start(now)
				}
			},
			"withdraw": func(t *rapid.T) {
				out = append(out, spend(b, now, rapid.IntRange(1, 20).Draw(t, "attempts"))...)
				now++ // or the reload would come a nanosecond later for one of the two
			},
			"give back": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("no permit is out")
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "permit")
				b.Settle(now, out[i], true)
				out = append(out[:i], out[i+1:]...)
			},
			"reload": func(t *rapid.T) {
				before, whole := b.Balance(now), twin.Balance(now)
				c := drawn()
				if b.Reload(now, c) != nil || twin.Reload(now, c) != nil {
					t.Fatal("refused")
				}
				after, all := b.Balance(now), twin.Balance(now)
				// What is rounded, is so in favour of the server: a micro-token for each part of the window.
				if want := all * before / whole; whole > 0 && (after > want+1e-9 || after < want-2e-5) {
					t.Fatalf("%v of %v is %v of %v; want %v", before, whole, after, all, want)
				}
			},
			"": func(t *rapid.T) {
				if got, most := b.Balance(now), twin.Balance(now); got > most {
					t.Fatalf("balance %v; want at most %v", got, most)
				}
			},
		})
	})
}
