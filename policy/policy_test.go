// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/usual"
	"github.com/stagger-go/stagger/policy"
)

// TestNewRefusesBoth has a spec that retries and hedges.
func TestNewRefusesBoth(t *testing.T) {
	t.Parallel()
	retry := usual.Retry()
	const want = "hedgingPolicy: is given together with retryPolicy: keep one of the two"
	if _, err := policy.New(policy.Spec{Retry: &retry, Hedge: &policy.HedgeSpec{MaxAttempts: 2}}); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// Only hedging after a quantile has a least delay.
func TestNew_MinDelay(t *testing.T) {
	t.Parallel()
	for quantile, want := range map[float64]time.Duration{0: 0, 0.95: defaults.MinHedgingDelay} {
		p := must.Get(policy.New(policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 2, Quantile: quantile}}))(t)
		if got := p.Spec().Hedge.MinDelay; got != want {
			t.Errorf("quantile %v: MinDelay %v; want %v", quantile, got, want)
		}
	}
}

// Policies are equal, in whatever order codes are listed.
func TestCodes_Sorted(t *testing.T) {
	t.Parallel()
	retry := usual.Retry()
	retry.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.Unavailable}
	p := must.Get(policy.New(policy.Spec{Retry: &retry}))(t)
	if got := p.Spec().Retry.RetryableStatusCodes; !slices.Equal(got, []codes.Code{codes.Aborted, codes.Unavailable}) {
		t.Errorf("%v", got)
	}
	if retry.RetryableStatusCodes[0] != codes.Unavailable {
		t.Errorf("New has sorted the caller's own: %v", retry.RetryableStatusCodes)
	}
}

func TestDiagnosticInJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]policy.Diagnostic{{Severity: document.SeverityNote, File: "f", Line: 1, Column: 2, Field: "a", Value: "b", Message: "c"}, {Severity: document.SeverityError}})
	const want = `[{"severity":"note","file":"f","line":1,"column":2,"field":"a","value":"b","message":"c"},{"severity":"error","file":"","message":""}]`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}

// An optional list of codes may be empty.
func TestNew_EmptyNonFatal(t *testing.T) {
	t.Parallel()
	if _, err := policy.New(policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 2, NonFatalStatusCodes: []codes.Code{}}}); err != nil {
		t.Error(err)
	}
}
