// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
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
	var m Method
	for n := range 2 * mostQuantiles {
		k := m.For(hedged(t, float64(n+1)/100), "", true, 0)
		if got := k.latency != nil; got != (n < mostQuantiles) {
			t.Errorf("quantile %d is followed: %v", n+1, got)
		}
		if again := m.For(hedged(t, float64(n+1)/100), "", true, 0); again.latency != k.latency {
			t.Errorf("quantile %d is not the same in another call", n+1)
		}
	}
	k := m.For(hedged(t, 0.01), "", true, 0)
	for range 50 {
		k.Answered(0, attempts.Answer{Took: 10 * time.Millisecond, Accepted: true})
		k.Answered(0, attempts.Answer{Took: time.Hour})
		k.Left(0, attempts.Lost{AtLeast: 20 * time.Millisecond})
		k.Left(0, attempts.Lost{})
	}
	if median, _ := k.Usual(); median < 10*time.Millisecond || median > 25*time.Millisecond {
		t.Errorf("median %v; want 10 to 20 ms: what was not accepted, or says nothing, does not count", median)
	}
}

// Without a hedge and without admission, only the last answers are recorded.
func TestKnown_LastAnswers(t *testing.T) {
	t.Parallel()
	p := decision.New(policy.Spec{})
	var m Method
	k := m.For(p, "", true, 0)
	if !k.Any() || k.Admits() || k.Admit(0, 0) != 1 || k.Queued(0, 0) || m.Gate() != nil {
		t.Errorf("%+v; want a method without admission", k)
	}
	if k.Sent(0) != 1 {
		t.Error("an extra attempt does not count as running")
	}
	k.Answered(time.Second, attempts.Answer{Took: 2, Limit: 0})
	if slow, _ := k.LastAnswers(time.Second, time.Second); slow > 0 {
		t.Error("an answer is slow, and nothing says from when on")
	}
	k.Answered(time.Second, attempts.Answer{Took: 2, Limit: 1})
	if slow, _ := k.LastAnswers(time.Second, time.Second); slow != 1 {
		t.Error("the last answer was slow, and nobody knows")
	}
}

// An answer is long in comparison with the whole time of its call, and with the fastest answer.
func TestKnown_LongAnswers(t *testing.T) {
	t.Parallel()
	p := decision.New(policy.Spec{})
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		took, whole time.Duration // after one of 100 ms
		want        int
	}{
		"much of its call":                 {301 * ms, 3 * time.Second, 1},
		"less":                             {300 * ms, 3 * time.Second, 0},
		"twice the fastest":                {200 * ms, 500 * ms, 0},
		"over twice the fastest":           {201 * ms, 500 * ms, 1},
		"of a call that has no deadline":   {time.Hour, attempts.Never, 0},
		"the fastest, of a hurried caller": {50 * ms, 100 * ms, 0},
	} {
		var m Method
		k := m.For(p, "", true, 0)
		k.Answered(0, attempts.Answer{Took: 100 * ms, Left: 100 * ms})
		k.Answered(0, attempts.Answer{Took: row.took, Left: row.whole})
		if _, long := k.LastAnswers(0, time.Second); long != row.want {
			t.Errorf("%s: %d are long; want %d", name, long, row.want)
		}
	}
}

// Long answers to hurried callers do not stop the retries of one that has much more time.
func TestKnown_LongForTheAskingCall(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var m Method
	k := m.For(decision.New(policy.Spec{}), "", true, 0)
	k.Answered(0, attempts.Answer{Took: 10 * ms, Left: time.Second})
	for range 5 {
		k.Answered(0, attempts.Answer{Took: 30 * ms, Left: 60 * ms})
	}
	for given, want := range map[time.Duration]int{60 * ms: 5, 2999 * ms: 5, 3000 * ms: 0, 10 * time.Second: 0, attempts.Never: 5} {
		if _, long := k.LastAnswers(0, given); long != want {
			t.Errorf("a call with %v: %d are long; want %d", given, long, want)
		}
	}
}
