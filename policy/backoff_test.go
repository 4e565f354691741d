// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/policy"
)

const (
	ms = time.Millisecond
	// almostOne is the largest chance that can be drawn.
	almostOne = 1 - 1.0/(1<<53)
)

// Each row is a formula of the design at its edges: random number 0, one half, and the largest.
func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	exponential := policy.Backoff{Initial: 100 * ms, Max: 1000 * ms, Multiplier: 2}
	with := func(j policy.Jitter, multiplier float64) policy.Backoff {
		b := exponential
		b.Jitter, b.Multiplier = j, multiplier
		return b
	}
	linear := func(multiplier float64) policy.Backoff {
		b := with(policy.JitterNone, multiplier)
		b.Linear = true
		return b
	}
	none := with(policy.JitterNone, 2)
	for _, row := range []struct {
		name     string
		backoff  policy.Backoff
		retry    int
		previous time.Duration
		r        float64
		want     time.Duration
	}{
		{"exponential first", none, 0, 0, 0.5, 100 * ms},
		{"exponential third", none, 2, 0, 0.5, 400 * ms},
		{"exponential capped", none, 4, 0, 0.5, 1000 * ms},
		{"exponential at retry 1,000,000", none, 1_000_000, 0, 0.5, 1000 * ms},
		{"exponential below one shrinks", with(policy.JitterNone, 0.5), 1, 0, 0, 50 * ms},
		{"linear first", linear(0.5), 0, 0, 0, 100 * ms},
		{"linear third", linear(0.5), 2, 0, 0, 200 * ms},
		{"linear capped", linear(2), 50, 0, 0, 1000 * ms},
		{"fixed", with(policy.JitterNone, 1), 7, 0, 0, 100 * ms},
		{"full lowest", exponential, 1, 0, 0, 0},
		{"full middle", exponential, 1, 0, 0.5, 100 * ms},
		{"full highest", exponential, 1, 0, almostOne, 200*ms - 1},
		{"full at the cap", exponential, 100, 0, 0.25, 250 * ms},
		{"equal lowest", with(policy.JitterEqual, 2), 1, 0, 0, 100 * ms},
		{"equal middle", with(policy.JitterEqual, 2), 1, 0, 0.5, 150 * ms},
		{"equal at the cap", with(policy.JitterEqual, 2), 100, 0, 0.5, 750 * ms},
		{"proportional lowest", with(policy.JitterProportional, 2), 0, 0, 0, 80 * ms},
		{"proportional middle", with(policy.JitterProportional, 2), 0, 0, 0.5, 100 * ms},
		{"proportional goes past the cap as gRPC's does", with(policy.JitterProportional, 2), 100, 0, 0.75, 1100 * ms},
		{"decorrelated first", with(policy.JitterDecorrelated, 2), 0, 0, 0.5, 200 * ms},
		{"decorrelated later", with(policy.JitterDecorrelated, 2), 1, 200 * ms, 0.5, 350 * ms},
		{"decorrelated lowest", with(policy.JitterDecorrelated, 2), 5, 900 * ms, 0, 100 * ms},
		{"decorrelated caps before it draws", with(policy.JitterDecorrelated, 2), 5, 900 * ms, 0.5, 550 * ms},
		{"initial above max", policy.Backoff{Initial: time.Hour, Max: ms, Multiplier: 2, Jitter: policy.JitterNone}, 0, 0, 0, ms},
		{"decorrelated with initial above max", policy.Backoff{Initial: time.Hour, Max: ms, Multiplier: 2, Jitter: policy.JitterDecorrelated}, 0, 0, 0.5, ms},
		{"longest duration, as it is", policy.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64, Multiplier: 1, Jitter: policy.JitterNone}, 0, 0, 0, math.MaxInt64},
		{"longest duration", policy.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64, Multiplier: 2, Jitter: policy.JitterProportional}, 9, 0, almostOne, math.MaxInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.backoff.Delay(row.retry, row.previous, row.r); got != row.want {
				t.Errorf("Delay(%d, %v, %v) = %v; want %v", row.retry, row.previous, row.r, got, row.want)
			}
		})
	}
}

func backoffs(t *rapid.T) policy.Backoff {
	return policy.Backoff{
		Initial:    time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "initial")),
		Max:        time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
		Multiplier: rapid.Float64Range(1e-9, 1e300).Draw(t, "multiplier"),
		Linear:     rapid.Bool().Draw(t, "linear"),
		Jitter: rapid.SampledFrom([]policy.Jitter{
			"", policy.JitterNone, policy.JitterFull, policy.JitterEqual, policy.JitterDecorrelated, policy.JitterProportional,
		}).Draw(t, "jitter"),
	}
}

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := backoffs(t)
		retry := rapid.IntRange(-1, math.MaxInt).Draw(t, "retry")
		previous := time.Duration(rapid.Int64().Draw(t, "previous"))
		r := rapid.Float64Range(0, almostOne).Draw(t, "r")
		got, limit := b.Delay(retry, previous, r), float64(b.Max)
		if b.Jitter == policy.JitterProportional {
			limit *= 1.2
		}
		if got < 0 || float64(got) > limit*(1+1e-12) {
			t.Fatalf("%+v.Delay(%d, %v, %v) = %v; want 0 to %v", b, retry, previous, r, got, time.Duration(limit))
		}
	})
}

// The mean and the spread over 100,000 draws, at the first retry and far beyond the cap: there must still be jitter after a
// long outage.
func TestJitterSpread(t *testing.T) {
	t.Parallel()
	const draws = 100_000
	for _, row := range []struct {
		jitter          policy.Jitter
		low, mean, high float64 // as parts of the backoff
	}{
		{policy.JitterFull, 0, 0.5, 1},
		{policy.JitterEqual, 0.5, 0.75, 1},
		{policy.JitterProportional, 0.8, 1, 1.2},
		{policy.JitterNone, 1, 1, 1},
	} {
		for _, retry := range []int{0, 1000} {
			t.Run(fmt.Sprintf("%v at retry %d", row.jitter, retry), func(t *testing.T) {
				t.Parallel()
				b := policy.Backoff{Initial: time.Second, Max: 30 * time.Second, Multiplier: 2, Jitter: row.jitter}
				whole := float64(min(time.Second<<min(retry, 5), b.Max))
				low, sum, high := math.Inf(1), 0.0, 0.0
				for i := range draws {
					// A low-discrepancy sequence: the same draws each run, evenly spread.
					_, r := math.Modf(float64(i) * math.Phi)
					part := float64(b.Delay(retry, 0, r)) / whole
					low, high, sum = min(low, part), max(high, part), sum+part
				}
				for what, v := range map[string][2]float64{
					"lowest": {low, row.low}, "mean": {sum / draws, row.mean}, "highest": {high, row.high},
				} {
					if math.Abs(v[0]-v[1]) > 0.001 {
						t.Errorf("%s = %.4f of the backoff; want %.4f", what, v[0], v[1])
					}
				}
			})
		}
	}
}

func TestJitterDecorrelated(t *testing.T) {
	t.Parallel()
	b := policy.Backoff{Initial: time.Second, Max: 30 * time.Second, Multiplier: 2, Jitter: policy.JitterDecorrelated}
	atCap, previous := 0, time.Duration(0)
	for i := range 10_000 {
		_, r := math.Modf(float64(i) * math.Phi)
		previous = b.Delay(i, previous, r)
		if previous > 29*time.Second {
			atCap++
		}
	}
	// Uniform between 1 s and 30 s, the last second holds one part in 29.
	if atCap > 10_000/20 {
		t.Errorf("%d of 10000 waits lie in the last second before the cap; want at most 500", atCap)
	}
}

func ExampleBackoff_Delay() {
	b := policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}
	for retry := range 8 {
		fmt.Print(b.Delay(retry, 0, 0.5), " ")
	}
	// Output: 25ms 50ms 100ms 200ms 400ms 800ms 1s 1s
}
