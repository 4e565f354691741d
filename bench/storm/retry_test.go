// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/policy"
)

func policies(t *testing.T) *policy.Set {
	t.Helper()
	set, err := policy.Parse("retry.yaml", policyFile)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestEveryStormHasAPolicyOfItsAttemptTimeoutThatIsElseTheSame(t *testing.T) {
	t.Parallel()
	set := policies(t)
	var timeouts []time.Duration
	var first *policy.RetrySpec
	for _, s := range storms() {
		p := set.Lookup(s.method())
		if p == nil {
			t.Fatalf("%s: no policy names %s", s.name, s.method())
		}
		timeouts = append(timeouts, p.PerAttemptTimeout())
		if p.PerAttemptTimeout() != s.attemptTimeout {
			t.Errorf("%s: %s has an attempt timeout of %v; want %v", s.name, s.method(), p.PerAttemptTimeout(), s.attemptTimeout)
		}
		if p.MaxAttempts() != attempts {
			t.Errorf("%s: %d attempts; want %d, as the peers have", s.name, p.MaxAttempts(), attempts)
		}
		retry := *p.Spec().Retry
		if b := retry.Backoff; b.Initial != initialBackoff || b.Max != maxBackoff {
			t.Errorf("%s: backoff from %v to %v; want %v to %v, as the peers have", s.name, b.Initial, b.Max, initialBackoff, maxBackoff)
		}
		retry.PerAttemptTimeout = 0
		if first == nil {
			first = &retry
		}
		if !reflect.DeepEqual(retry, *first) {
			t.Errorf("%s: %+v; want what the first storm has: %+v", s.name, retry, *first)
		}
	}
	slices.Sort(timeouts)
	if n := len(slices.Compact(timeouts)); n != len(set.Policies()) {
		t.Errorf("%d policies for %d attempt timeouts", len(set.Policies()), n)
	}
}

func TestThePolicyFileHasNoWarningsAndTheBudgetOfTheTargets(t *testing.T) {
	t.Parallel()
	set := policies(t)
	if w := set.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	if got := set.Budgets()[0].Ratio.Percent; got != 10 {
		t.Errorf("the budget is %v %%; want 10, which the targets are for", got)
	}
	if got := set.Budgets()[0].Ratio.Window; got != lead {
		t.Errorf("the budget's window is %v; want that of the lead-in, %v", got, lead)
	}
	if set.Lookup(service+"Connect") != nil {
		t.Error("the calls that connect before a storm have a policy, and earn extra attempts; want none")
	}
}
