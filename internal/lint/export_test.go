// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/policy"
)

const exported = `
loadBalancingConfig: [{round_robin: {}}]
idempotency: DECLARED
retryThrottling: {maxTokens: 10, tokenRatio: 0.5}
maxAttemptsLimit: 10
defaultTimeout: 9s
budgets: [{name: orders, bucket: {}}]
methodConfig:
  - name: [{service: a.B, method: C}, {service: a.B, method: D}]
    timeout: 2s
    waitForReady: false
    maxRequestMessageBytes: 0
    idempotency: ASSUME
    retryPolicy: {maxAttempts: 7, initialBackoff: 0.05s, maxBackoff: 2s, backoffMultiplier: 1.5,
      retryableStatusCodes: [14, ABORTED], jitter: EQUAL, growth: LINEAR, perAttemptTimeout: 0.5s, budget: orders,
      maxPushback: 60s, chain: SUPPRESS, maxConnectionWait: 7s, firstRetry: AT_ONCE,
      perCode: [{codes: [ABORTED], maxAttempts: 2}]}
  - name: []
    timeout: 9s
  - name: [{service: a.B}]
    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, hedgingQuantile: {quantile: 0.9}}
  - name: [{}]
    idempotency: NONE
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, budget: NONE}
`

func TestServiceConfig(t *testing.T) {
	t.Parallel()
	config, _ := lint.Export(mustParse(t, exported), true)
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
	_, notes := lint.Export(mustParse(t, exported), true)
	var got []string
	for _, n := range notes {
		field, value, _ := strings.Cut(n.String(), ": ")
		value, _, _ = strings.Cut(value, ": ")
		got = append(got, field+" "+value)
		if n.Message == "" {
			t.Errorf("%s: nothing is said", field)
		}
	}
	const budgetLess = "gRPC has no budget except retryThrottling; without that, nothing bounds what all calls together add"
	want := []string{
		"methodConfig[0].retryPolicy.maxAttempts 7",
		"methodConfig[0].retryPolicy.growth LINEAR",
		"methodConfig[0].retryPolicy.jitter EQUAL",
		"methodConfig[0].retryPolicy.firstRetry AT_ONCE",
		"methodConfig[0].retryPolicy.perAttemptTimeout 0.5s",
		"methodConfig[0].retryPolicy.budget orders",
		"methodConfig[0].retryPolicy.maxPushback 60s",
		"methodConfig[0].retryPolicy.perCode[0] ABORTED",
		"methodConfig[0].retryPolicy.chain SUPPRESS",
		"methodConfig[0].retryPolicy.maxConnectionWait 7s",
		"methodConfig[2].idempotency DECLARED",
		"methodConfig[2].hedgingPolicy gRPC for Go does not hedge",
		"methodConfig[2].hedgingPolicy.hedgingQuantile gRPC hedges after hedgingDelay, 0.1s",
		"methodConfig[2].hedgingPolicy.budget " + budgetLess,
		"methodConfig[3].idempotency NONE",
		"defaultTimeout 9s",
		"retryThrottling gRPC for Go counts for each connection, and stagger for all connections to a target together",
	}
	if !slices.Equal(got, want) {
		t.Errorf("notes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServiceConfigNotesStrictestName(t *testing.T) {
	t.Parallel()
	set := mustParse(t, `
methodConfig:
  - name: [{service: a.B}, {service: a.B, method: C}]
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, budget: NONE}`)
	_, notes := lint.Export(set, true)
	if len(notes) != 1 || notes[0].Field != "methodConfig[0].idempotency" || notes[0].Value != "DECLARED" {
		t.Errorf("notes: %v; want one, that gRPC repeats the service's methods", notes)
	}
}

const someUnsafe = `
methodConfig:
  - name: [{service: a.B}, {service: a.B, method: C}]
    timeout: 2s
    retryPolicy: &retry {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, budget: NONE}
  - name: [{service: a.N, method: M}]
    idempotency: NONE
    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, budget: NONE}
  - name: [{service: a.K, method: M}]
    idempotencyKey: {header: x-key}
    retryPolicy: *retry
  - name: [{service: a.K, method: Assumed}]
    idempotencyKey: {header: x-key}
    idempotency: ASSUME
    retryPolicy: *retry
  - name: [{service: shop.Mixed}]
    retryPolicy: *retry
  - name: [{}]
    idempotency: ASSUME
    retryPolicy: *retry
`

// TestServiceConfigLeavesUnsafeOut covers each reason not to be idempotent, and entries that stay to hide the one for
// everything.
func TestServiceConfigLeavesUnsafeOut(t *testing.T) {
	t.Parallel()
	set := mustParse(t, someUnsafe)
	config, notes := lint.Export(set, false)
	const retry = `"retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`
	const want = `{
  "methodConfig": [
    {"name": [{"service": "a.B", "method": "C"}], "timeout": "2s", ` + retry + `},
    {"name": [{"service": "a.B"}], "timeout": "2s"},
    {"name": [{"service": "a.N", "method": "M"}]},
    {"name": [{"service": "a.K", "method": "M"}]},
    {"name": [{"service": "a.K", "method": "Assumed"}], ` + retry + `},
    {"name": [{"service": "shop.Mixed", "method": "Get"}], ` + retry + `},
    {"name": [{"service": "shop.Mixed"}]},
    {"name": [{}], ` + retry + `}
  ]
}`
	if got := strings.Join(strings.Fields(string(config)), ""); got != strings.Join(strings.Fields(want), "") {
		t.Errorf("ServiceConfig(false) =\n%s\nwant\n%s", config, want)
	}
	var got []string
	for _, n := range notes {
		got = append(got, n.String())
	}
	wantNotes := []string{
		"methodConfig[0].name[0]: /a.B/: retryPolicy left out: nothing declares it idempotent",
		"methodConfig[1].name[0]: /a.N/M: hedgingPolicy left out: idempotency is NONE",
		"methodConfig[2].name[0]: /a.K/M: retryPolicy left out: gRPC sends no idempotency key",
		"methodConfig[3].idempotencyKey: x-key: gRPC sends no such key",
		"methodConfig[4].name[0]: /shop.Mixed/: retryPolicy left out: nothing declares it idempotent, but for Get",
	}
	if !slices.Equal(got, wantNotes) {
		t.Errorf("notes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantNotes, "\n"))
	}
}

// TestServiceConfigAssumedKeys has keys in a file that assumes all methods to be idempotent.
func TestServiceConfigAssumedKeys(t *testing.T) {
	t.Parallel()
	all, _ := lint.Export(mustParse(t, "idempotency: ASSUME"+strings.ReplaceAll(someUnsafe, "idempotency: NONE", "")), true)
	safe, _ := lint.Export(mustParse(t, "idempotency: ASSUME"+strings.ReplaceAll(someUnsafe, "idempotency: NONE", "")), false)
	if string(all) != string(safe) {
		t.Errorf("%s\nwithout what is assumed:\n%s", all, safe)
	}
}

func TestLintElsewhere(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range lint.Lint("f", []byte(someUnsafe), lint.Options{OtherClients: true}) {
		if strings.Contains(d.Message, "stagger export") {
			got = append(got, d.String())
		}
	}
	const (
		says   = "other gRPC clients that are given this file retry it anyway "
		remedy = `; give them what "stagger export" writes`
	)
	want := []string{
		`f:3:12: methodConfig[0].name[0]: "/a.B/": ` + says + "(nothing declares it idempotent)" + remedy,
		`f:7:12: methodConfig[1].name[0]: "/a.N/M": ` + says + "(idempotency is NONE)" + remedy,
		`f:10:12: methodConfig[2].name[0]: "/a.K/M": ` + says + "(gRPC sends no idempotency key)" + remedy,
		`f:17:12: methodConfig[4].name[0]: "/shop.Mixed/": ` + says + "(nothing declares it idempotent, but for Get)" + remedy,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const modes = `methodConfig: [
{name: [{service: a.B, method: Off}], mode: OFF, retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [14]}},
{name: [{service: a.B, method: Trial}], mode: OBSERVE, timeout: 1s, hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}},
{name: [{service: a.B, method: Some}], hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}},
{name: [{service: a.B, method: Plain}], mode: OFF, timeout: 1s}]`

// Clients without modes get only the policies that are enforced.
func TestServiceConfigModes(t *testing.T) {
	t.Parallel()
	const want = `{"methodConfig": [
		{"name": [{"service": "a.B", "method": "Off"}]},
		{"name": [{"service": "a.B", "method": "Trial"}], "timeout": "1s"},
		{"name": [{"service": "a.B", "method": "Some"}], "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "1s"}},
		{"name": [{"service": "a.B", "method": "Plain"}], "timeout": "1s"}]}`
	for _, assume := range []bool{true, false} {
		config, notes := lint.Export(mustParse(t, modes), assume)
		if got := strings.Join(strings.Fields(string(config)), ""); got != strings.Join(strings.Fields(want), "") {
			t.Errorf("ServiceConfig(%v) =\n%s", assume, config)
		}
		for _, want := range []string{
			"methodConfig[0].retryPolicy: left out: the mode is OFF",
			"methodConfig[1].hedgingPolicy: left out: the mode is OBSERVE",
		} {
			if !slices.ContainsFunc(notes, func(d policy.Diagnostic) bool { return d.String() == want }) {
				t.Errorf("notes %v; want %s", notes, want)
			}
		}
		if slices.ContainsFunc(notes, func(d policy.Diagnostic) bool { return strings.Contains(d.Field, "[3]") }) {
			t.Errorf("notes %v: nothing is left out of an entry without retries", notes)
		}
	}
}

func TestServiceConfigModeOfFile(t *testing.T) {
	t.Parallel()
	config, _ := lint.Export(mustParse(t, "mode: OFF\n"+modes), true)
	if strings.Contains(string(config), "Policy") {
		t.Errorf("a file that is off is exported with policies:\n%s", config)
	}
}

func TestLintModes(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range lint.Lint("f", []byte(modes), lint.Options{OtherClients: true}) {
		if strings.Contains(d.Message, "other gRPC clients") {
			got = append(got, d.Field+" "+d.Message[strings.Index(d.Message, "("):strings.Index(d.Message, ";")])
		}
	}
	want := []string{
		"methodConfig[0].retryPolicy (the mode is OFF)",
		"methodConfig[1].hedgingPolicy (the mode is OBSERVE)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestExportLoadBalancing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		elsewhere: 0,
		"loadBalancingConfig: [{round_robin: {}}]":                                             0,
		"loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]": 1,
	} {
		_, notes := lint.Export(mustParse(t, text), false)
		if len(notes) != want || want == 1 && !strings.Contains(notes[0].Message, "list {round_robin: {}} behind "+balancing.Policy) {
			t.Errorf("%s: %v; want %d notes", text, notes, want)
		}
	}
}

// Clients without stagger make no more attempts than stagger does.
func TestServiceConfigCap(t *testing.T) {
	t.Parallel()
	const file = "methodConfig:\n- name: [{service: a.B, method: C}]\n  hedgingPolicy: {maxAttempts: 9}\nmaxAttemptsLimit: "
	for limit, want := range map[string]string{"3": `"maxAttempts": 3`, "5": `"maxAttempts": 5`, "7": `"maxAttempts": 7`} {
		config, notes := lint.Export(mustParse(t, file+limit), false)
		noted := slices.ContainsFunc(notes, func(d policy.Diagnostic) bool { return strings.Contains(d.Message, "gRPC cuts it to 5") })
		if !strings.Contains(string(config), want) || noted != (limit == "7") {
			t.Errorf("limit %s: %s\n%v; want %s", limit, config, notes, want)
		}
	}
}
