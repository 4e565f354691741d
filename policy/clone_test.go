// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// A policy is immutable: what its config points to may change afterwards.
func TestChangingAConfigAfterwardsChangesNothing(t *testing.T) {
	t.Parallel()
	slow := policy.Backoff{Initial: time.Second, Max: time.Second, Multiplier: 1, Jitter: policy.JitterNone}
	retry := policy.DefaultRetry()
	retry.PerCode = []policy.CodeSpec{{Codes: policy.Codes(codes.Unavailable), Backoff: &slow}}
	config := policy.Config{
		Methods: []policy.MethodConfig{{
			Names: []policy.Name{{Service: "a.B", Method: "C"}},
			Spec:  policy.Spec{Retry: &retry, MaxRequestBytes: new(7)},
		}},
		Budgets:    []policy.BudgetSpec{{Name: "b", Config: budget.DefaultRatio()}},
		Throttling: &budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1},
	}
	set, err := policy.NewSet(config)
	if err != nil {
		t.Fatal(err)
	}
	retry.MaxAttempts = 0
	slow.Initial = 0
	retry.PerCode[0].Codes = 0
	*config.Methods[0].MaxRequestBytes = 0
	config.Budgets[0].Config = nil
	config.Throttling.MaxTokens = 0

	p := set.Lookup("/a.B/C")
	call, out := policy.Call{Attempts: 1, Safe: true}, failed(codes.Unavailable)
	if d := p.Decide(&call, &out, &purse{}, noon, 0); d.Delay != time.Second {
		t.Errorf("Decide = %+v; want a retry in 1s", d)
	}
	if p.MaxAttempts() != 3 || *p.Spec().MaxRequestBytes != 7 || set.Budgets()[0].Config != budget.DefaultRatio() || set.Throttling().MaxTokens != 10 {
		t.Errorf("%d attempts, %d bytes, %v %%, %d tokens; want 3, 7, 10, 10",
			p.MaxAttempts(), *p.Spec().MaxRequestBytes, set.Budgets()[0].Config, set.Throttling().MaxTokens)
	}
}
