// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"
)

// Policies of one method share its Method, and each has its own quantile.
func TestKnown_Quantiles(t *testing.T) {
	t.Parallel()
	m := NewMethod()
	for n := range 2 * mostQuantiles {
		k := m.For(float64(n+1)/100, 0)
		if got := k.latency != nil; got != (n < mostQuantiles) {
			t.Errorf("quantile %d is followed: %v", n+1, got)
		}
		if again := m.For(float64(n+1)/100, 0); again.latency != k.latency {
			t.Errorf("quantile %d is not the same in another call", n+1)
		}
	}
	k := m.For(0.05, 0)
	for range 50 {
		k.Answered(0, Answer{Took: 10 * time.Millisecond, Accepted: true})
		k.Answered(0, Answer{Took: time.Hour})
		k.Outlasted(0, 20*time.Millisecond)
	}
	if q := k.Quantile(); q < 10*time.Millisecond || q > 25*time.Millisecond {
		t.Errorf("quantile %v; want 10 to 20 ms: what was not accepted, or says nothing, does not count", q)
	}
}

// Without a hedgingQuantile, only the answers' speeds are recorded.
func TestKnown_Without(t *testing.T) {
	t.Parallel()
	k := NewMethod().For(0, 0)
	k.Outlasted(0, time.Second)
	k.Answered(0, Answer{Took: time.Second, Speed: VerySlow})
	if got := k.Evidence(); !k.Any() || k.Quantile() != 0 || got != (Evidence{Known: 1, Slow: 1, VerySlow: 1}) {
		t.Errorf("%+v; want one very slow answer and no quantile", got)
	}
}

// All policies of a method share its answers.
func TestKnown_SharesAnswers(t *testing.T) {
	t.Parallel()
	m := NewMethod()
	one, other := m.For(0.9, 0), m.For(0, 0)
	one.Answered(0, Answer{Speed: Slow})
	if got := other.Evidence(); got != (Evidence{Known: 1, Slow: 1}) {
		t.Errorf("%+v; want the answer to a call with another policy", got)
	}
}
