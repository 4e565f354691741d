// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"
)

const exported = `
loadBalancingConfig: [{round_robin: {}}]
idempotency: DECLARED
retryThrottling: {maxTokens: 10, tokenRatio: 0.5}
budgets: [{name: orders, ratio: {}}]
methodConfig:
  - name: [{service: a.B, method: C}, {service: a.B, method: D}]
    timeout: 2s
    waitForReady: false
    maxRequestMessageBytes: 0
    idempotency: ASSUME
    retryPolicy: {maxAttempts: 7, initialBackoff: 0.05s, maxBackoff: 2s, backoffMultiplier: 1.5,
      retryableStatusCodes: [14, ABORTED], jitter: EQUAL, growth: LINEAR, perAttemptTimeout: 0.5s, budget: orders,
      maxPushback: 60s, minAttemptTime: 0.001s, chain: ONCE, waitForReadyOnRetry: true, maxConnectionWait: 7s,
      perCode: [{codes: [ABORTED], costFactor: 2}], codeOverrides: [{codes: [UNKNOWN], as: ABORTED}]}
  - name: []
    timeout: 9s
  - name: [{service: a.B}]
    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, hedgingQuantile: {quantile: 0.9}}
  - name: [{}]
    idempotency: NONE
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, commitOn: HEADERS, budget: NONE}
`

func TestServiceConfig(t *testing.T) {
	t.Parallel()
	config, _ := mustParse(t, "f", exported).ServiceConfig()
	const want = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [
    {"name": [{"service": "a.B", "method": "C"}, {"service": "a.B", "method": "D"}],
     "waitForReady": false, "timeout": "2s", "maxRequestMessageBytes": 0,
     "retryPolicy": {"maxAttempts": 7, "initialBackoff": "0.05s", "maxBackoff": "2s", "backoffMultiplier": 1.5, "retryableStatusCodes": ["ABORTED", "UNAVAILABLE"]}},
    {"name": [], "timeout": "9s"},
    {"name": [{"service": "a.B"}], "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.1s"}},
    {"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}
  ],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.5}
}`
	if got := strings.Join(strings.Fields(string(config)), ""); got != strings.Join(strings.Fields(want), "") {
		t.Errorf("ServiceConfig() =\n%s\nwant\n%s", config, want)
	}
}

func TestServiceConfigNotes(t *testing.T) {
	t.Parallel()
	_, notes := mustParse(t, "f", exported).ServiceConfig()
	var got []string
	for _, n := range notes {
		field, value, _ := strings.Cut(n.String(), ": ")
		value, _, _ = strings.Cut(value, ": ")
		got = append(got, field+" "+value)
		if n.Message == "" {
			t.Errorf("%s: nothing is said", field)
		}
	}
	const budgetLess = "gRPC knows no budget but retryThrottling; without that, nothing bounds what all calls together add"
	want := []string{
		"methodConfig[0].retryPolicy.maxAttempts 7",
		"methodConfig[0].retryPolicy.growth LINEAR",
		"methodConfig[0].retryPolicy.jitter EQUAL",
		"methodConfig[0].retryPolicy.perAttemptTimeout 0.5s",
		"methodConfig[0].retryPolicy.budget orders",
		"methodConfig[0].retryPolicy.commitOn SEEN",
		"methodConfig[0].retryPolicy.maxPushback 60s",
		"methodConfig[0].retryPolicy.perCode[0] ABORTED",
		"methodConfig[0].retryPolicy.codeOverrides[0] UNKNOWN",
		"methodConfig[0].retryPolicy.chain ONCE",
		"methodConfig[0].retryPolicy.waitForReadyOnRetry true",
		"methodConfig[0].retryPolicy.maxConnectionWait 7s",
		"methodConfig[2].idempotency DECLARED",
		"methodConfig[2].hedgingPolicy gRPC for Go does not hedge",
		"methodConfig[2].hedgingPolicy.hedgingQuantile gRPC hedges after hedgingDelay, 0.1s",
		"methodConfig[2].hedgingPolicy.budget " + budgetLess,
		"methodConfig[3].idempotency NONE",
		"retryThrottling gRPC for Go counts for each connection, and stagger for all connections to a target together",
	}
	if !slices.Equal(got, want) {
		t.Errorf("notes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServiceConfigNotesKey(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
  - name: [{service: a.B}]
    idempotencyKey: {header: x-key}
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, commitOn: HEADERS, budget: NONE}`)
	_, notes := set.ServiceConfig()
	if len(notes) != 1 || notes[0].Field != "methodConfig[0].idempotencyKey" || notes[0].Value != "x-key" {
		t.Errorf("notes: %v; want one, of the key", notes)
	}
}

func TestServiceConfigNotesStrictestName(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
  - name: [{service: a.B}, {service: a.B, method: C}]
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, commitOn: HEADERS, budget: NONE}`)
	_, notes := set.ServiceConfig()
	if len(notes) != 1 || notes[0].Field != "methodConfig[0].idempotency" || notes[0].Value != "DECLARED" {
		t.Errorf("notes: %v; want one, that gRPC repeats the service's methods", notes)
	}
}
