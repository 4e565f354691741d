// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Each row is a formula of docs/policy-file.md at its edges: random number 0, one half, and the largest.
func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	exponential := spec.Backoff{Initial: 100 * ms, Max: 1000 * ms, Multiplier: 2}
	with := func(j string, multiplier float64) spec.Backoff {
		b := exponential
		b.Jitter, b.Multiplier = j, multiplier
		return b
	}
	linear := func(multiplier float64) spec.Backoff {
		b := with("NONE", multiplier)
		b.Growth = "LINEAR"
		return b
	}
	none := with("NONE", 2)
	for _, row := range []struct {
		name     string
		backoff  spec.Backoff
		retry    int
		previous time.Duration
		r        float64
		want     time.Duration
	}{
		{"exponential first", none, 0, 0, 0.5, 100 * ms},
		{"exponential third", none, 2, 0, 0.5, 400 * ms},
		{"exponential capped", none, 4, 0, 0.5, 1000 * ms},
		{"exponential at retry 1,000,000", none, 1_000_000, 0, 0.5, 1000 * ms},
		{"exponential below one shrinks", with("NONE", 0.5), 1, 0, 0, 50 * ms},
		{"linear first", linear(0.5), 0, 0, 0, 100 * ms},
		{"linear third", linear(0.5), 2, 0, 0, 200 * ms},
		{"linear capped", linear(2), 50, 0, 0, 1000 * ms},
		{"fixed", with("NONE", 1), 7, 0, 0, 100 * ms},
		{"full lowest", exponential, 1, 0, 0, 0},
		{"full middle", exponential, 1, 0, 0.5, 100 * ms},
		{"full highest", exponential, 1, 0, almostOne, 200*ms - 1},
		{"full at the cap", exponential, 100, 0, 0.25, 250 * ms},
		{"equal lowest", with("EQUAL", 2), 1, 0, 0, 100 * ms},
		{"equal middle", with("EQUAL", 2), 1, 0, 0.5, 150 * ms},
		{"equal at the cap", with("EQUAL", 2), 100, 0, 0.5, 750 * ms},
		{"proportional lowest", with("PROPORTIONAL", 2), 0, 0, 0, 80 * ms},
		{"proportional middle", with("PROPORTIONAL", 2), 0, 0, 0.5, 100 * ms},
		{"proportional goes past the cap as gRPC's does", with("PROPORTIONAL", 2), 100, 0, 0.75, 1100 * ms},
		{"decorrelated first", with("DECORRELATED", 2), 0, 0, 0.5, 200 * ms},
		{"decorrelated later", with("DECORRELATED", 2), 1, 200 * ms, 0.5, 350 * ms},
		{"decorrelated lowest", with("DECORRELATED", 2), 5, 900 * ms, 0, 100 * ms},
		{"decorrelated caps before it draws", with("DECORRELATED", 2), 5, 900 * ms, 0.5, 550 * ms},
		{"initial above max", spec.Backoff{Initial: time.Hour, Max: ms, Multiplier: 2, Jitter: "NONE"}, 0, 0, 0, ms},
		{"decorrelated with initial above max", spec.Backoff{Initial: time.Hour, Max: ms, Multiplier: 2, Jitter: "DECORRELATED"}, 0, 0, 0.5, ms},
		{"longest duration, as it is", spec.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64, Multiplier: 1, Jitter: "NONE"}, 0, 0, 0, math.MaxInt64},
		{"longest duration", spec.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64, Multiplier: 2, Jitter: "PROPORTIONAL"}, 9, 0, almostOne, math.MaxInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := decision.Delay(row.backoff, row.retry, row.previous, row.r); got != row.want {
				t.Errorf("Delay(%d, %v, %v) = %v; want %v", row.retry, row.previous, row.r, got, row.want)
			}
		})
	}
}

func backoffs(t *rapid.T) spec.Backoff {
	return spec.Backoff{
		Initial:    time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "initial")),
		Max:        time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
		Multiplier: rapid.Float64Range(1e-9, 1e300).Draw(t, "multiplier"),
		Growth:     rapid.SampledFrom([]string{"", "EXPONENTIAL", "LINEAR", "FIXED"}).Draw(t, "growth"),
		Jitter: rapid.SampledFrom([]string{
			"", "NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL",
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
		got, limit := decision.Delay(b, retry, previous, r), float64(b.Max)
		if b.Jitter == "PROPORTIONAL" {
			limit *= 1.2
		}
		if got < 0 || float64(got) > limit*(1+1e-12) {
			t.Fatalf("%+v, Delay(%d, %v, %v) = %v; want 0 to %v", b, retry, previous, r, got, time.Duration(limit))
		}
	})
}
