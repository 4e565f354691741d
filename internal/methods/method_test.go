// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/policy"
)

func hedged(t *testing.T, quantile float64) *decision.Policy {
	t.Helper()
	p, err := policy.New(policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 2, Delay: time.Second, Quantile: quantile}})
	if err != nil {
		t.Fatal(err)
	}
	return decision.New(p.Spec())
}

// Policies of one method share its Method, and each has its own quantile.
func TestKnown_Quantiles(t *testing.T) {
	t.Parallel()
	m := New(new(latency.Outcomes))
	for n := range 2 * mostQuantiles {
		k := m.For(hedged(t, float64(n+1)/100), true, 0)
		if got := k.latency != nil; got != (n < mostQuantiles) {
			t.Errorf("quantile %d is followed: %v", n+1, got)
		}
		if again := m.For(hedged(t, float64(n+1)/100), true, 0); again.latency != k.latency {
			t.Errorf("quantile %d is not the same in another call", n+1)
		}
	}
	k := m.For(hedged(t, 0.05), true, 0)
	for range 50 {
		k.Answered(0, attempts.Answer{Took: 10 * time.Millisecond, Accepted: true})
		k.Answered(0, attempts.Answer{Took: time.Hour})
		k.Left(0, attempts.Lost{AtLeast: 20 * time.Millisecond})
		k.Left(0, attempts.Lost{})
	}
	if q := k.Quantile(); q < 10*time.Millisecond || q > 25*time.Millisecond {
		t.Errorf("quantile %v; want 10 to 20 ms: what was not accepted, or says nothing, does not count", q)
	}
}

// Without a hedgingQuantile and without admission, only the target's outcomes are recorded.
func TestKnown_Without(t *testing.T) {
	t.Parallel()
	m := New(new(latency.Outcomes))
	k := m.For(decision.New(policy.Spec{}), true, 0)
	if !k.Any() || k.Admit(0, 0) != 1 || k.Queued(0, 0) || m.Gate() != nil || k.Sent(0) != 1 || k.Quantile() != 0 {
		t.Errorf("%+v; want a method without admission", k)
	}
}

// A fast answer is ignored for a tenth of a second after another one, unless a quantile is followed.
func TestKnown_IgnoresFast(t *testing.T) {
	t.Parallel()
	target := new(latency.Outcomes)
	plain, quantile := New(target).For(decision.New(policy.Spec{}), true, 0), New(target).For(hedged(t, 0.5), true, 0)
	first := plain.IgnoresFast(0)
	plain.Answered(0, attempts.Answer{Took: time.Millisecond, Left: attempts.Never})
	if first || !plain.IgnoresFast(time.Second/10-1) || plain.IgnoresFast(time.Second/10) || quantile.IgnoresFast(0) {
		t.Error("want one ignored for a tenth of a second after the first one, and none where a quantile is followed")
	}
}

// An answer is long in comparison with the whole time of its call, and with the method's fastest answer.
func TestKnown_LongAnswers(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		took, whole, limit time.Duration // after one of 100 ms
		want               bool
	}{
		"much of its call":                 {301 * ms, 3 * time.Second, 0, true},
		"less":                             {300 * ms, 3 * time.Second, 0, false},
		"twice the fastest":                {200 * ms, 500 * ms, 0, false},
		"over twice the fastest":           {201 * ms, 500 * ms, 0, true},
		"of a call that has no deadline":   {time.Hour, attempts.Never, 0, false},
		"longer than its timeout":          {201 * ms, attempts.Never, 200 * ms, true},
		"just its timeout":                 {201 * ms, attempts.Never, 201 * ms, false},
		"the fastest, of a hurried caller": {50 * ms, 100 * ms, 0, false},
	} {
		m := New(new(latency.Outcomes))
		k := m.For(decision.New(policy.Spec{}), true, 0)
		k.Answered(0, attempts.Answer{Took: 100 * ms, Left: 100 * ms})
		k.Answered(0, attempts.Answer{Took: row.took, Left: row.whole, Limit: row.limit})
		if got := k.Evidence(0, time.Second).LongNow; got != row.want {
			t.Errorf("%s: long: %v; want %v", name, got, row.want)
		}
	}
}

// Long answers to hurried callers do not stop the retries of one that has much more time.
func TestKnown_LongForTheAskingCall(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	m := New(new(latency.Outcomes))
	k := m.For(decision.New(policy.Spec{}), true, 0)
	k.Answered(0, attempts.Answer{Took: 10 * ms, Left: time.Second})
	for range 5 {
		k.Answered(0, attempts.Answer{Took: 30 * ms, Left: 60 * ms})
	}
	for given, want := range map[time.Duration]bool{60 * ms: true, 2999 * ms: true, 3000 * ms: false, 10 * time.Second: false, attempts.Never: true} {
		if e := k.Evidence(0, given); e.Queue() != want || e.LongNow != want {
			t.Errorf("a call with %v: %+v; want long: %v", given, e, want)
		}
	}
}

// A missed deadline counts like a long answer, for all methods of the target.
func TestKnown_Missed(t *testing.T) {
	t.Parallel()
	target, p := new(latency.Outcomes), decision.New(policy.Spec{})
	a, b := New(target).For(p, true, 0), New(target).For(p, true, 0)
	a.Left(0, attempts.Lost{Why: attempts.LostOther, Left: time.Second})
	if b.Evidence(0, time.Second).Queue() {
		t.Error("an attempt that tells nothing counts")
	}
	a.Left(0, attempts.Lost{Why: attempts.LostDeadline, Left: time.Second})
	if !b.Evidence(0, time.Second).Queue() {
		t.Error("a missed deadline doesn't count")
	}
	const ms = time.Millisecond
	for took, want := range map[time.Duration]bool{100 * ms: false, 120 * ms: false, 121 * ms: true} {
		k := New(new(latency.Outcomes)).For(p, true, 0)
		k.Answered(0, attempts.Answer{Took: 60 * ms, Left: time.Second})
		k.Left(4*time.Second, attempts.Lost{Why: attempts.LostBelow, Took: took, Left: time.Second})
		if got := k.Evidence(4*time.Second, time.Second).Queue(); got != want {
			t.Errorf("a deadline that a server gave to others, missed after %v: %v; want %v", took, got, want)
		}
	}
}
