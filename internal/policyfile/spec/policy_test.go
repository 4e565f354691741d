// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
)

// TestNewRefusesBoth has a spec that retries and hedges.
func TestNewRefusesBoth(t *testing.T) {
	t.Parallel()
	retry := policytest.UsualRetry()
	const want = "hedgingPolicy: is given together with retryPolicy: keep one of the two"
	if _, err := compiled.NewPolicy(spec.Policy{Retry: &retry, Hedge: &spec.Hedge{MaxAttempts: 2}}); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// Only hedging after a quantile has a least delay.
func TestNew_MinDelay(t *testing.T) {
	t.Parallel()
	for quantile, want := range map[float64]time.Duration{0: 0, 0.95: defaults.MinHedgingDelay} {
		p := testkit.Must(compiled.NewPolicy(spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, Quantile: quantile}}))(t)
		if got := compiled.Of(p).Hedge.MinDelay; got != want {
			t.Errorf("quantile %v: MinDelay %v; want %v", quantile, got, want)
		}
	}
}

// Policies are equal, in whatever order codes are listed.
func TestCodes_Sorted(t *testing.T) {
	t.Parallel()
	retry := policytest.UsualRetry()
	retry.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.Unavailable}
	p := testkit.Must(compiled.NewPolicy(spec.Policy{Retry: &retry}))(t)
	if got := compiled.Of(p).Retry.RetryableStatusCodes; !slices.Equal(got, []codes.Code{codes.Aborted, codes.Unavailable}) {
		t.Errorf("%v", got)
	}
	if retry.RetryableStatusCodes[0] != codes.Unavailable {
		t.Errorf("New has sorted the caller's own: %v", retry.RetryableStatusCodes)
	}
}

// An optional list of codes may be empty.
func TestNew_EmptyNonFatal(t *testing.T) {
	t.Parallel()
	if _, err := compiled.NewPolicy(spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, NonFatalStatusCodes: []codes.Code{}}}); err != nil {
		t.Error(err)
	}
}
