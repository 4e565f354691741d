// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// TestNewRefusesBoth has a spec that retries and hedges.
func TestNewRefusesBoth(t *testing.T) {
	t.Parallel()
	retry := policy.DefaultRetry()
	const want = "hedgingPolicy: stands beside retryPolicy: keep one of the two"
	if _, err := policy.New(policy.Spec{Retry: &retry, Hedge: &policy.HedgeSpec{MaxAttempts: 2}}); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// Policies are the same, in whatever order codes are listed.
func TestCodes_Sorted(t *testing.T) {
	t.Parallel()
	retry := policy.DefaultRetry()
	retry.Codes = []codes.Code{codes.Unavailable, codes.Aborted, codes.Unavailable}
	p, err := policy.New(policy.Spec{Retry: &retry})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Spec().Retry.Codes; !slices.Equal(got, []codes.Code{codes.Aborted, codes.Unavailable}) {
		t.Errorf("%v", got)
	}
	if retry.Codes[0] != codes.Unavailable {
		t.Errorf("New has sorted the caller's own: %v", retry.Codes)
	}
}
