// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/changes"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

const file = `
methodConfig:
  - name:
      - {service: a.Orders, method: Get}
      - {service: a.Orders, method: List}
      - {service: a.Orders, method: Count}
      - {service: a.Orders, method: Find}
      - {service: a.Orders, method: Watch}
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
  - name: [{service: a.Stock, method: Watch}]
    timeout: 2s
  - name: [{service: a.Users}]
    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}
budgets:
  - {name: orders, bucket: {size: 4}}
`

func TestOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		from, to string
		want     string
	}{
		"a comment":            {"\nmethodConfig:\n", "\n# a comment\nmethodConfig:\n", ""},
		"one key of many":      {"maxAttempts: 3", "maxAttempts: 2", "maxAttempts of Count, Find, Get, 2 more 3 → 2"},
		"a time":               {"initialBackoff: 0.1s", "initialBackoff: 0.02s", "initialBackoff of Count, Find, Get, 2 more 100ms → 20ms"},
		"codes":                {"[UNAVAILABLE]", "[UNAVAILABLE, ABORTED]", "retryableStatusCodes of Count, Find, Get, 2 more [UNAVAILABLE] → [ABORTED, UNAVAILABLE]"},
		"a setting goes":       {"timeout: 2s", "maxRequestMessageBytes: 9", "timeout of a.Stock/Watch 2s → none; maxRequestMessageBytes of a.Stock/Watch none → 9"},
		"a default written":    {"budget: orders}", "budget: orders, jitter: FULL, onAttemptTimeout: HEDGE}", ""},
		"another jitter":       {"budget: orders}", "budget: orders, jitter: NONE}", "jitter of Count, Find, Get, 2 more FULL → NONE"},
		"a boolean comes":      {"timeout: 2s", "timeout: 2s\n    waitForReady: true", "waitForReady of a.Stock/Watch none → true"},
		"a policy goes":        {"    hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}", "    timeout: 1s", "timeout of a.Users none → 1s; hedgingPolicy of a.Users removed"},
		"a method comes":       {"a.Orders, method: Get}", "a.Orders, method: Got}", "Get removed; Got added"},
		"all methods":          {"[{service: a.Users}]", "[{}]", "all methods added; a.Users removed"},
		"settings of codes":    {"budget: orders}", "budget: orders, perCode: [{codes: [UNAVAILABLE], maxAttempts: 2}]}", "perCode of Count, Find, Get, 2 more changed"},
		"a number of a budget": {"size: 4", "size: 8", "size of budget orders 4 → 8"},
		"the kind of a budget": {"bucket: {size: 4}", "throttle: {maxTokens: 10, tokenRatio: 0.1}", "kind of budget orders bucket → throttle"},
		"a budget comes":       {"budgets:\n", "budgets:\n  - {name: spare, bucket: {}}\n", "budget spare added"},
		"the mode":             {"budgets:\n", "mode: OBSERVE\nbudgets:\n", "mode ENFORCE → OBSERVE"},
		"throttling":           {"budgets:\n", "retryThrottling: {maxTokens: 10, tokenRatio: 0.1}\nbudgets:\n", "retryThrottling added"},
		"load balancing":       {"budgets:\n", "loadBalancingConfig: [{round_robin: {}}]\nbudgets:\n", "loadBalancingConfig changed"},
		"a limit":              {"budgets:\n", "maxWaiting: 7\nbudgets:\n", "maxWaiting 10000 → 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(file, row.from) {
				t.Fatalf("the file lacks %q", row.from)
			}
			before := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
			after := testkit.Must(policy.Parse("retry.yaml", []byte(strings.Replace(file, row.from, row.to, 1))))(t)
			got := changes.Of(before, after)
			if want := "hash " + before.Hash() + " → " + after.Hash(); got[0] != want {
				t.Errorf("first %q; want %q", got[0], want)
			}
			if got := strings.Join(got[1:], "; "); got != row.want {
				t.Errorf("changes %q; want %q", got, row.want)
			}
			if same := changes.Of(after, after); same != nil {
				t.Errorf("of equal sets: %q", same)
			}
		})
	}
}

func TestOf_Throttling(t *testing.T) {
	t.Parallel()
	set := func(tokens int) *policy.Set {
		return testkit.Must(compiled.NewSet(spec.Config{RetryThrottling: &budget.ThrottleConfig{MaxTokens: tokens, TokenRatio: 0.1}}))(t)
	}
	if got := changes.Of(set(10), set(20)); len(got) != 1 || got[0] != "maxTokens of retryThrottling 10 → 20" {
		t.Errorf("%q", got)
	}
}

// Every setting has the key that the schema of the file has.
func TestKey(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"hedgingQuantile.quantile": true, "hedgingQuantile.min": true, "hedgingQuantile.max": true}
	messages := policyv1.File_stagger_policy_v1_policy_proto.Messages()
	for i := range messages.Len() {
		addKeys(messages.Get(i), known)
	}
	fields := 0
	for _, kind := range []any{
		spec.Config{},
		spec.Policy{},
		spec.Retry{},
		spec.Code{},
		spec.Hedge{},
		backoff.Config{},
		spec.Budget{},
		budget.BucketConfig{},
		budget.ThrottleConfig{},
	} {
		in := reflect.TypeOf(kind)
		for f := range in.Fields() {
			unnamed := f.Name == "Methods" || in == reflect.TypeFor[spec.Budget]() && f.Name == "Config" // compared by their names and kinds
			if key := changes.Key(in, f); f.IsExported() && key != "" && !unnamed && !known[key] {
				t.Errorf("%s.%s: no key %q in a policy file", in, f.Name, key)
			}
			fields++
		}
	}
	if fields < 45 {
		t.Errorf("%d fields", fields)
	}
}

func addKeys(m protoreflect.MessageDescriptor, to map[string]bool) {
	for i := range m.Fields().Len() {
		to[m.Fields().Get(i).JSONName()] = true
	}
	for i := range m.Messages().Len() {
		addKeys(m.Messages().Get(i), to)
	}
}
