// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	var r reasons
	tell := r.observer().Call
	tell(t.Context(), interceptor.Event{Reason: policy.ReasonSucceeded})
	for _, reason := range []policy.Reason{policy.ReasonNotIdempotent, policy.ReasonBudgetExhausted, policy.ReasonBudgetExhausted, policy.ReasonNonRetryable} {
		tell(t.Context(), interceptor.Event{Reason: reason, Err: &interceptor.Error{}})
	}
	want := "      2  budget_exhausted\n      1  non_retryable\n      1  not_idempotent\n"
	if got := r.String(); got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
