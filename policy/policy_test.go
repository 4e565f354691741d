// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

func TestPolicyConnectionWait(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		call, retry *bool // waitForReady, waitForReadyOnRetry
		wait        time.Duration
		waits       bool
	}{
		"nothing said":          {nil, nil, policy.DefaultMaxConnectionWait, false},
		"all attempts wait":     {new(true), nil, 0, false},
		"no attempt waits":      {new(false), nil, 0, false},
		"later attempts wait":   {nil, new(true), 0, true},
		"later attempts do not": {nil, new(false), 0, false},
	} {
		retry := policy.DefaultRetry()
		retry.WaitForReadyOnRetry = row.retry
		p, err := policy.New(policy.Spec{WaitForReady: row.call, Retry: &retry})
		if err != nil {
			t.Fatal(err)
		}
		if p.MaxConnectionWait() != row.wait || p.WaitForReadyOnRetry() != row.waits {
			t.Errorf("%s: %v, in gRPC %v; want %v, %v", name, p.MaxConnectionWait(), p.WaitForReadyOnRetry(), row.wait, row.waits)
		}
	}
}

// A hedging policy has no backoff of its own for the waits that it has.
func TestPolicyBackoff(t *testing.T) {
	t.Parallel()
	hedge := policy.HedgeSpec{MaxAttempts: 2}
	p, err := policy.New(policy.Spec{Hedge: &hedge})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Backoff(), policy.DefaultRetry().Backoff; got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got := mustPolicy(t, nil).Backoff().Initial; got != 100*ms {
		t.Errorf("a retry policy's own backoff begins with %v", got)
	}
	retry := policy.DefaultRetry()
	const want = "hedgingPolicy: stands beside retryPolicy: keep one of the two"
	if _, err := policy.New(policy.Spec{Retry: &retry, Hedge: &hedge}); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// Whatever a call needs before an attempt has failed takes its policy off the fast path.
func TestPolicyFastPath(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*policy.Spec){
		"":                      func(*policy.Spec) {},
		"a timeout":             func(s *policy.Spec) { s.Timeout = time.Second },
		"a key":                 func(s *policy.Spec) { s.IdempotencyKey = "x-key" },
		"waitForReady":          func(s *policy.Spec) { s.WaitForReady = new(false) },
		"a request's size":      func(s *policy.Spec) { s.MaxRequestBytes = new(1) },
		"a response's size":     func(s *policy.Spec) { s.MaxResponseBytes = new(1) },
		"an attempt timeout":    func(s *policy.Spec) { s.Retry.PerAttemptTimeout = time.Second },
		"hedging":               func(s *policy.Spec) { s.Retry, s.Hedge = nil, &policy.HedgeSpec{MaxAttempts: 2} },
		"commitment by headers": func(s *policy.Spec) { s.Retry.CommitOnHeaders = true },
	} {
		retry := policy.DefaultRetry()
		spec := policy.Spec{Retry: &retry}
		change(&spec)
		p, err := policy.New(spec)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := p.FastPath(); got != (name == "") {
			t.Errorf("with %q: fast path %v", name, got)
		}
	}
}

func TestDecisionShadow(t *testing.T) {
	t.Parallel()
	for d, want := range map[policy.Decision]bool{
		{Retry: true, Reason: policy.ReasonRetry}: false,
		{Retry: true, Reason: policy.ReasonHedge}: false,
		{Reason: policy.ReasonRetry}:              true,
		{Reason: policy.ReasonHedge}:              true,
		{Reason: policy.ReasonBudgetExhausted}:    false,
	} {
		if got := d.Shadow(); got != want {
			t.Errorf("%+v: %v; want %v", d, got, want)
		}
	}
}

func TestCodeSet(t *testing.T) {
	t.Parallel()
	s := policy.Codes(codes.Unavailable, 31, 32, 1000)
	for code, want := range map[codes.Code]bool{codes.Unavailable: true, 31: true, codes.OK: false, 32: false, 1000: false} {
		if got := s.Has(code); got != want {
			t.Errorf("%d: %v; want %v", code, got, want)
		}
	}
}
