// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
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

func TestCodeSet(t *testing.T) {
	t.Parallel()
	s := policy.Codes(codes.Unavailable, 31, 32, 1000)
	for code, want := range map[codes.Code]bool{codes.Unavailable: true, 31: true, codes.OK: false, 32: false, 1000: false} {
		if got := s.Has(code); got != want {
			t.Errorf("%d: %v; want %v", code, got, want)
		}
	}
}
