// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"testing"
)

func throttle(tb testing.TB, maxTokens int, tokenRatio float64) *throttleBudget {
	tb.Helper()
	return made(tb, ThrottleConfig{MaxTokens: maxTokens, TokenRatio: tokenRatio}).(*throttleBudget)
}

// tokens returns the tokens of a bucket.
func tokens(b *tokenBucket) float64 {
	n, _ := b.tokensAndCapacity()
	return float64(n) / 1000
}

// failing and succeeding play n failed attempts, and n successful calls.
func failing(n int) func(*throttleBudget) {
	return func(b *throttleBudget) {
		for range n {
			b.Observe(t0, EventAttemptFailed)
		}
	}
}

func succeeding(n int) func(*throttleBudget) {
	return func(b *throttleBudget) {
		for range n {
			b.Observe(t0, EventCallSucceeded)
		}
	}
}

// Each row is a sentence of gRFC A6 (“Throttling retry attempts and hedged RPCs”).
func TestThrottle(t *testing.T) {
	t.Parallel()
	type line struct {
		do     func(*throttleBudget)
		tokens float64
		ok     bool // of a withdrawal afterwards
	}
	none := failing(0)
	for _, c := range []struct {
		name      string
		maxTokens int
		ratio     float64
		steps     []line
	}{
		{"it starts full", 10, 0.1, []line{{none, 10, true}}},
		{"success cannot fill it further", 10, 0.1, []line{{succeeding(5), 10, true}, {failing(1), 9, true}, {succeeding(11), 10, true}}},
		{"a failure takes one", 10, 0.1, []line{{failing(1), 9, true}, {failing(3), 6, true}}},
		{"exactly half is not more than half", 10, 0.1, []line{{failing(5), 5, false}, {succeeding(1), 5.1, true}}},
		{"half of an odd number is not rounded", 5, 0.001, []line{
			{failing(2), 3, true},
			{failing(1), 2, false},
			{succeeding(500), 2.5, false},
			{succeeding(1), 2.501, true},
		}},
		{"nothing goes below zero", 3, 0.5, []line{{failing(100), 0, false}, {succeeding(3), 1.5, false}, {succeeding(1), 2, true}}},
		{"the smallest bucket stops at its first failure", 1, 1, []line{{failing(1), 0, false}, {succeeding(1), 1, true}}},
		{"the largest bucket", 1000, 1, []line{{failing(499), 501, true}, {failing(1), 500, false}, {succeeding(1), 501, true}}},
		{"0.5466 is 0.546", 10, 0.5466, []line{{failing(10), 0, false}, {succeeding(1), 0.546, false}, {succeeding(9), 5.46, true}}},
		{"0.5469999 is 0.546", 10, 0.5469999, []line{{failing(10), 0, false}, {succeeding(1), 0.546, false}}},
		{"1.001 is 1.001, though 1.001 · 1000 falls short in floating point", 10, 1.001, []line{
			{failing(10), 0, false},
			{succeeding(1), 1.001, false},
		}},
		{"0.001 a thousand times is 1", 10, 0.001, []line{{failing(10), 0, false}, {succeeding(1000), 1, false}}},
		{"0.1 ten times is 1", 10, 0.1, []line{{failing(10), 0, false}, {succeeding(10), 1, false}}},
		{"a ratio above one", 10, 2.5, []line{{failing(10), 0, false}, {succeeding(2), 5, false}, {succeeding(1), 7.5, true}}},
		{"a ratio above the bucket fills it", 10, 1e300, []line{{failing(10), 0, false}, {succeeding(1), 10, true}}},
		{"a call that ends badly counts by its attempts alone", 10, 1, []line{
			{func(b *throttleBudget) { b.Observe(t0, EventCallFailed) }, 10, true},
			{failing(3), 7, true},
			{func(b *throttleBudget) { b.Observe(t0, EventCallFailed) }, 7, true},
		}},
		{"extra attempts are free, and nothing comes of them", 10, 1, []line{{func(b *throttleBudget) {
			b.Observe(t0, EventAttemptFailed)
			b.Allow(t0, CauseFailure)
			b.Allow(t0, CauseSlow)
		}, 9, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := throttle(t, c.maxTokens, c.ratio)
			for i, s := range c.steps {
				s.do(b)
				if got := tokens(&b.bucket); got != s.tokens {
					t.Fatalf("step %d: %v tokens; want %v", i, got, s.tokens)
				}
				for _, k := range []Cause{CauseFailure, CauseSlow} {
					if answer, _ := b.Allow(t0, k); (answer == Yes) != s.ok {
						t.Errorf("step %d: after %v allowed: %v; want %v", i, k, answer == Yes, s.ok)
					}
				}
				if got, want := b.State(t0).Balance, max(s.tokens-float64(c.maxTokens)/2, 0); math.Abs(got-want) > 1e-9 {
					t.Errorf("step %d: balance %v; want %v", i, got, want)
				}
			}
		})
	}
}
