// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// goodConfig is a config that each row of the test spoils.
func goodConfig() policy.Config {
	retry, ratio := policy.DefaultRetry(), budget.DefaultRatio()
	retry.Budget = "b"
	return policy.Config{
		Methods: []policy.MethodConfig{{
			Names: []policy.Name{{Service: "a.B", Method: "C"}},
			Spec:  policy.Spec{Retry: &retry},
		}},
		Budgets: []policy.BudgetSpec{{Name: "b", Config: ratio}},
	}
}

// TestNewSetRefusesWhatAFileCannotSay has the rules that a file never comes to: those for both are
// in testdata/bad. Without a file, problems have no place and show the values of Go.
func TestNewSetRefusesWhatAFileCannotSay(t *testing.T) {
	t.Parallel()
	const entry, retry = "methodConfig[0].", "methodConfig[0].retryPolicy."
	for _, row := range []struct {
		want  string
		spoil func(*policy.Config, *policy.RetrySpec)
	}{
		{"idempotency: 4: must be ASSUME, DECLARED or NONE", func(c *policy.Config, _ *policy.RetrySpec) { c.Idempotency = 4 }},
		{entry + "idempotency: 9: must be ASSUME, DECLARED or NONE", func(c *policy.Config, _ *policy.RetrySpec) { c.Methods[0].Idempotency = 9 }},
		{entry + "timeout: -1s: must be more than 0s", func(c *policy.Config, _ *policy.RetrySpec) { c.Methods[0].Timeout = -time.Second }},
		{entry + "maxRequestMessageBytes: -1: must not be negative", func(c *policy.Config, _ *policy.RetrySpec) { c.Methods[0].MaxRequestBytes = new(-1) }},
		{entry + "maxResponseMessageBytes: -2: must not be negative", func(c *policy.Config, _ *policy.RetrySpec) { c.Methods[0].MaxResponseBytes = new(-2) }},
		{retry + "maxAttempts: 0: must be at least 2, since it counts the first attempt; for one attempt leave the policy out", func(_ *policy.Config, r *policy.RetrySpec) { r.MaxAttempts = 0 }},
		{retry + "backoffMultiplier: NaN: must be a number more than 0", func(_ *policy.Config, r *policy.RetrySpec) { r.Backoff.Multiplier = math.NaN() }},
		{retry + "backoffMultiplier: +Inf: must be a number more than 0", func(_ *policy.Config, r *policy.RetrySpec) { r.Backoff.Multiplier = math.Inf(1) }},
		{retry + "growth: 4: must be EXPONENTIAL, LINEAR or FIXED", func(_ *policy.Config, r *policy.RetrySpec) { r.Backoff.Growth = 4 }},
		{retry + "jitter: 6: must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL", func(_ *policy.Config, r *policy.RetrySpec) { r.Backoff.Jitter = 6 }},
		{retry + "commitOn: 3: must be SEEN or HEADERS", func(_ *policy.Config, r *policy.RetrySpec) { r.CommitOn = 3 }},
		{retry + `retryableStatusCodes: "OK": is not a failure; list codes such as UNAVAILABLE`, func(_ *policy.Config, r *policy.RetrySpec) { r.Codes |= policy.Codes(codes.OK) }},
		{retry + "retryableStatusCodes: 131072: must hold only codes that gRPC defines (1 to 16)", func(_ *policy.Config, r *policy.RetrySpec) { r.Codes = 1 << 17 }},
		{retry + `budget: "x": no budget has that name; declare it under budgets, or write NONE for no limit`, func(_ *policy.Config, r *policy.RetrySpec) { r.Budget = "x" }},
		{retry + "perCode[0].initialBackoff: 0s: must be more than 0s", func(_ *policy.Config, r *policy.RetrySpec) {
			r.PerCode = []policy.CodeSpec{{Codes: r.Codes, Backoff: &policy.Backoff{Max: 1, Multiplier: 1}}}
		}},
		{retry + "perCode[0].maxAttempts: -1: must be 1 to the policy's maxAttempts, 3", func(_ *policy.Config, r *policy.RetrySpec) {
			r.PerCode = []policy.CodeSpec{{Codes: r.Codes, MaxAttempts: -1}}
		}},
		{"budgets[0].scope: 4: must be TARGET, PROCESS or SERVICE", func(c *policy.Config, _ *policy.RetrySpec) { c.Budgets[0].Scope = 4 }},
		{"budgets[0].ratio.percent: NaN: must be 0.0001 to 1000", func(c *policy.Config, _ *policy.RetrySpec) {
			ratio := budget.DefaultRatio()
			ratio.Percent = math.NaN()
			c.Budgets[0].Config = ratio
		}},
		{"budgets[0]: must have a config of package budget, and not a pointer to one", func(c *policy.Config, _ *policy.RetrySpec) {
			c.Budgets[0].Config = new(budget.DefaultRatio())
		}},
		{"budgets[0]: must have a kind: ratio, throttle, concurrent or refund", func(c *policy.Config, _ *policy.RetrySpec) { c.Budgets[0].Config = nil }},
		{"retryThrottling.tokenRatio: +Inf: must be at least 0.001, and finite", func(c *policy.Config, _ *policy.RetrySpec) {
			c.Throttling = &budget.ThrottleConfig{MaxTokens: 1, TokenRatio: math.Inf(1)}
		}},
	} {
		c := goodConfig()
		row.spoil(&c, c.Methods[0].Retry)
		set, err := policy.NewSet(c)
		if err == nil || err.Error() != row.want || set != nil {
			t.Errorf("NewSet = %v, %v; want the error %s", set, err, row.want)
		}
	}
}

func TestNewSetTakesDefaultsForZeros(t *testing.T) {
	t.Parallel()
	c := goodConfig()
	c.Methods[0].Retry.PerCode = []policy.CodeSpec{{Codes: policy.Codes(codes.Unavailable)}}
	set, err := policy.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	if p := set.Lookup("/a.B/C"); p == nil || p.MaxAttempts() != 3 || p.Budget() != "b" || p.PerAttemptTimeout() != 0 {
		t.Errorf("Lookup = %+v", p)
	}
}

// TestNewNamesFieldsWithoutPath has a policy on its own: its fields stand in no file and no entry.
func TestNewNamesFieldsWithoutPath(t *testing.T) {
	t.Parallel()
	_, err := policy.New(policy.Spec{Timeout: -1, Retry: &policy.RetrySpec{}})
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok {
		t.Fatalf("New = %v; want a *policy.Error", err)
	}
	var fields []string
	for _, p := range fault.Diagnostics {
		if p.File != "" || p.Line != 0 || p.Column != 0 {
			t.Errorf("%v has a place", p)
		}
		fields = append(fields, p.Field)
	}
	want := []string{
		"timeout", "retryPolicy.maxAttempts", "retryPolicy.initialBackoff", "retryPolicy.maxBackoff",
		"retryPolicy.backoffMultiplier", "retryPolicy.retryableStatusCodes",
	}
	if len(fields) != len(want) {
		t.Fatalf("problems of %v; want %v", fields, want)
	}
	for i := range want {
		if fields[i] != want[i] {
			t.Errorf("problem %d is of %s; want %s", i, fields[i], want[i])
		}
	}
}
