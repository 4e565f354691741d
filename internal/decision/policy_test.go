// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
)

func TestPolicyConnectionWait(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		ready *bool // waitForReady
		wait  time.Duration
	}{
		"nothing said":      {nil, defaults.MaxConnectionWait},
		"all attempts wait": {new(true), defaults.MaxConnectionWait},
		"no attempt waits":  {new(false), 0},
	} {
		p := policyOf(t, spec.Policy{WaitForReady: row.ready, Retry: new(policytest.UsualRetry())})
		if p.MaxConnectionWait() != row.wait {
			t.Errorf("%s: %v; want %v", name, p.MaxConnectionWait(), row.wait)
		}
	}
}

// A hedging policy uses the default backoff for its waits.
func TestPolicyBackoff(t *testing.T) {
	t.Parallel()
	hedge := spec.Hedge{MaxAttempts: 2}
	p := policyOf(t, spec.Policy{Hedge: &hedge})
	if got, want := decision.BackoffOf(p), policytest.UsualRetry().Backoff; got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got := decision.BackoffOf(mustPolicy(t, nil)).Initial; got != 100*ms {
		t.Errorf("a retry policy's own backoff begins with %v", got)
	}
}

func TestDecisionAnnounced(t *testing.T) {
	t.Parallel()
	for d, want := range map[decision.Decision]bool{
		{Retry: true, Reason: policy.ReasonRetry}: false,
		{Retry: true, Reason: policy.ReasonHedge}: false,
		{Reason: policy.ReasonRetry}:              true,
		{Reason: policy.ReasonHedge}:              true,
		{Reason: policy.ReasonBudgetExhausted}:    false,
	} {
		if got := d.Announced(); got != want {
			t.Errorf("%+v: %v; want %v", d, got, want)
		}
	}
}
