// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	const retry = "retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
	const before = `
maxWaiting: 7
budgets: [{name: orders, ratio: {}}, {name: spare, ratio: {}}]
methodConfig:
- name: [{service: acme.A, method: Get}, {service: acme.B}]
  ` + retry + `- name: [{}]
  timeout: 1s
`
	for name, row := range map[string]struct {
		after string
		want  []string
	}{
		"a comment":       {before + "# spelled anew\n", nil},
		"quotes":          {"\"maxWaiting\"" + before[len("\nmaxWaiting"):], nil},
		"nothing is left": {"{}", []string{"policy /acme.A/Get removed", "policy /acme.B/ removed", "policy / removed", "budget orders removed", "budget spare removed", "maxWaiting changed"}},
		"one of each": {`
maxWaiting: 7
retryThrottling: {maxTokens: 10, tokenRatio: 0.1}
budgets: [{name: new, ratio: {}}, {name: orders, ratio: {percent: 11}}]
methodConfig:
- name: [{service: acme.C}, {service: acme.B}]
  ` + retry + `- name: [{}]
  timeout: 2s
`, []string{"policy /acme.C/ added", "policy / changed", "policy /acme.A/Get removed", "budget new added", "budget orders changed", "budget spare removed", "retryThrottling added"}},
		"refused calls":        {"refusedRetry: DENY" + before, []string{"policy /acme.A/Get changed", "policy /acme.B/ changed", "policy / changed", "refusedRetry changed"}},
		"transparent retries":  {"transparentRetry: DENY" + before, []string{"policy /acme.A/Get changed", "policy /acme.B/ changed", "policy / changed", "transparentRetry changed"}},
		"a limit":              {"maxAttemptsLimit: 7" + before, []string{"maxAttemptsLimit changed from 5 to 7"}},
		"the default limit":    {"maxAttemptsLimit: 5" + before, nil},
		"the mode of all":      {"mode: OFF" + before, []string{"mode changed from ENFORCE to OFF"}},
		"the part of all":      {"percent: 7" + before, []string{"mode changed from ENFORCE to ENFORCE for 7 %"}},
		"the mode of an entry": {strings.Replace(before, "name: [{}]", "name: [{}]\n  mode: OFF", 1), []string{"policy / changed", "mode / changed from ENFORCE to OFF"}},
		"what entries inherit": {"idempotency: ASSUME" + before, []string{"policy /acme.B/ changed", "policy / changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decision.Changes(mustParse(t, before).Set, mustParse(t, row.after).Set)
			if !slices.Equal(got, row.want) {
				t.Errorf("%q; want %q", got, row.want)
			}
		})
	}
}

func TestChangesOfThrottling(t *testing.T) {
	t.Parallel()
	one := mustParse(t, "retryThrottling: {maxTokens: 10, tokenRatio: 0.1}")
	for text, want := range map[string]string{
		"retryThrottling: {maxTokens: 10, tokenRatio: 0.1}": "[]",
		"retryThrottling: {maxTokens: 11, tokenRatio: 0.1}": "[retryThrottling changed]",
		"{}": "[retryThrottling removed]",
	} {
		if got := fmt.Sprint(decision.Changes(one.Set, mustParse(t, text).Set)); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}

func TestChangesOfLoadBalancing(t *testing.T) {
	t.Parallel()
	const elsewhere = "loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]"
	other := strings.Replace(elsewhere, "round_robin", "least_request_experimental", 1)
	for name, row := range map[string]struct{ before, after, want string }{
		"added":         {"{}", elsewhere, "loadBalancingConfig added"},
		"removed":       {elsewhere, "{}", "loadBalancingConfig removed"},
		"changed":       {elsewhere, other, "loadBalancingConfig changed"},
		"the same":      {elsewhere, elsewhere + " # a comment", ""},
		"gRPC's either": {"{}", "loadBalancingConfig: [{round_robin: {}}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(decision.Changes(mustParse(t, row.before).Set, mustParse(t, row.after).Set), "")
			if got != row.want {
				t.Errorf("%q; want %q", got, row.want)
			}
		})
	}
}
