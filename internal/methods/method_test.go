// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/internal/policies"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func hedged(t *testing.T, quantile float64) *policy.Policy {
	t.Helper()
	p, err := policies.New(spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, HedgingDelay: time.Second, Quantile: quantile}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Policies of one method share its Method, and each has its own quantile.
func TestKnown_Quantiles(t *testing.T) {
	t.Parallel()
	m := New()
	for n := range 2 * mostQuantiles {
		k := m.For(hedged(t, float64(n+1)/100), 0)
		if got := k.latency != nil; got != (n < mostQuantiles) {
			t.Errorf("quantile %d is followed: %v", n+1, got)
		}
		if again := m.For(hedged(t, float64(n+1)/100), 0); again.latency != k.latency {
			t.Errorf("quantile %d is not the same in another call", n+1)
		}
	}
	k := m.For(hedged(t, 0.05), 0)
	for range 50 {
		k.Answered(0, attempts.Answer{Took: 10 * time.Millisecond, Accepted: true})
		k.Answered(0, attempts.Answer{Took: time.Hour})
		k.Outlasted(0, 20*time.Millisecond)
	}
	if q := k.Quantile(); q < 10*time.Millisecond || q > 25*time.Millisecond {
		t.Errorf("quantile %v; want 10 to 20 ms: what was not accepted, or says nothing, does not count", q)
	}
}

// Without a hedgingQuantile, only the answers' speeds are recorded.
func TestKnown_Without(t *testing.T) {
	t.Parallel()
	k := New().For(testkit.Must(policies.New(spec.Policy{}))(t), 0)
	k.Outlasted(0, time.Second)
	k.Answered(0, attempts.Answer{Took: time.Second, Speed: latency.VerySlow})
	if got := k.Evidence(); !k.Any() || k.Quantile() != 0 || got != (latency.Evidence{Known: 1, Slow: 1, VerySlow: 1}) {
		t.Errorf("%+v; want one very slow answer and no quantile", got)
	}
}

// All policies of a method share its answers.
func TestKnown_SharesAnswers(t *testing.T) {
	t.Parallel()
	m := New()
	one, other := m.For(hedged(t, 0.9), 0), m.For(testkit.Must(policies.New(spec.Policy{}))(t), 0)
	one.Answered(0, attempts.Answer{Speed: latency.Slow})
	if got := other.Evidence(); got != (latency.Evidence{Known: 1, Slow: 1}) {
		t.Errorf("%+v; want the answer to a call with another policy", got)
	}
}
