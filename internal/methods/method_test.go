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
	"github.com/stagger-go/stagger/internal/tools/must"
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
	m := New(new(latency.Responses))
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

// Without a hedgingQuantile, only the target's responses are recorded.
func TestKnown_Without(t *testing.T) {
	t.Parallel()
	m := New(new(latency.Responses))
	k := m.For(must.Get(policies.New(spec.Policy{}))(t), 0)
	k.Outlasted(0, time.Second)
	if !k.Any() || k.Quantile() != 0 {
		t.Errorf("%+v; want a method without a quantile", k)
	}
}

const ms = time.Millisecond

// usually returns a method at a target whose usual time is 100 ms, a second ago.
func usually(t *testing.T, target *latency.Responses) *Known {
	t.Helper()
	k := New(target).For(must.Get(policies.New(spec.Policy{}))(t), 0)
	for i := range 8 {
		k.Answered(time.Duration(i-18)*100*ms, attempts.Answer{Took: 100 * ms, Left: time.Second, Accepted: true})
	}
	return &k
}

// A response is long if it took more than twice as long as is usual for its method, and either a tenth of its call's time or its
// attempt's timeout.
func TestKnown_Long(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		took, whole, limit time.Duration
		want               bool
	}{
		"much of its call":               {301 * ms, 3 * time.Second, 0, true},
		"less":                           {300 * ms, 3 * time.Second, 0, false},
		"twice the usual":                {200 * ms, 500 * ms, 0, false},
		"over twice the usual":           {205 * ms, 500 * ms, 0, true}, // the usual time is known within a hundredth
		"of a call that has no deadline": {time.Hour, attempts.Never, 0, false},
		"longer than its timeout":        {205 * ms, attempts.Never, 200 * ms, true},
		"just its timeout":               {205 * ms, attempts.Never, 205 * ms, false},
		"of a hurried caller":            {50 * ms, 100 * ms, 0, false},
	} {
		target := new(latency.Responses)
		k := usually(t, target)
		k.Answered(0, attempts.Answer{Took: row.took, Left: row.whole, Limit: row.limit})
		if got := !k.Evidence(0).Fast; got != row.want {
			t.Errorf("%s: long: %v; want %v", name, got, row.want)
		}
	}
}

// What the last responses show, of all methods of a target.
func TestKnown_Evidence(t *testing.T) {
	t.Parallel()
	long := attempts.Answer{Took: 500 * ms, Left: time.Second}
	fast := attempts.Answer{Took: 100 * ms, Left: time.Second, Accepted: true}
	for name, row := range map[string]struct {
		responses []attempts.Answer // one a second, from second 10 on: the earlier ones don't count any more
		after     time.Duration
		want      latency.Evidence
	}{
		"no recent response":        {nil, 0, latency.Evidence{Fast: true}},
		"fast ones":                 {[]attempts.Answer{fast, fast}, 0, latency.Evidence{Well: true, Fast: true}},
		"one of them is long":       {[]attempts.Answer{fast, long, fast}, 0, latency.Evidence{}},
		"all are long":              {[]attempts.Answer{long, long}, 0, latency.Evidence{Queue: true}},
		"the only one is long":      {[]attempts.Answer{long}, 0, latency.Evidence{Queue: true}},
		"long ones ten seconds ago": {[]attempts.Answer{long, long}, 12 * time.Second, latency.Evidence{Fast: true}},
		"five fast ones came since": {[]attempts.Answer{long, fast, fast, fast, fast, fast}, 0, latency.Evidence{Well: true, Fast: true}},
	} {
		target := new(latency.Responses)
		k, now := usually(t, target), 10*time.Second
		for _, a := range row.responses {
			k.Answered(now, a)
			now += time.Second
		}
		if got := k.Evidence(now + row.after); got != row.want {
			t.Errorf("%s: %+v; want %+v", name, got, row.want)
		}
	}
	target := new(latency.Responses)
	if k := New(target).For(must.Get(policies.New(spec.Policy{}))(t), 0); k.Evidence(0).Fast {
		t.Error("fast, though nothing is known of the method")
	}
	known, unknown := usually(t, target), New(target).For(must.Get(policies.New(spec.Policy{}))(t), 0)
	known.Answered(0, long)
	if e := unknown.Evidence(0); e.Fast || e.Queue {
		t.Errorf("another method of the target: %+v; want one long response of several", e)
	}
}

// Attempts without a response show nothing: long polls, whose deadline is their normal end, must not stop the retries of others.
func TestKnown_Lost(t *testing.T) {
	t.Parallel()
	target := new(latency.Responses)
	k := usually(t, target)
	before := k.Evidence(0)
	for range 5 {
		k.Outlasted(0, time.Second)
	}
	if got := k.Evidence(0); got != before {
		t.Errorf("%+v; want %+v", got, before)
	}
}
