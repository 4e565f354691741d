// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
)

const named = `
policies:
- name: reads
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
- name: slow
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.5s}
methodConfig:
- {name: [{service: a.B, method: Get}], timeout: 1s, policy: reads}
- {name: [{service: a.B, method: List}], policy: reads}
- {name: [{service: a.B, method: Find}], policy: slow}
`

// TestNamedPolicies compares with the same policies written out.
func TestNamedPolicies(t *testing.T) {
	t.Parallel()
	const retry = "retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}"
	got, want := mustParse(t, "f", named), mustParse(t, "f", `
methodConfig:
- {name: [{service: a.B, method: Get}], timeout: 1s, `+retry+`}
- {name: [{service: a.B, method: List}], `+retry+`}
- {name: [{service: a.B, method: Find}], hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.5s}}
`)
	if changes := decision.Changes(want, got); len(changes) > 0 || len(got.Policies()) != 3 {
		t.Errorf("%d policies; %v", len(got.Policies()), changes)
	}
	if g, w := got.Lookup("/a.B/Get").Spec(), want.Lookup("/a.B/Get").Spec(); !reflect.DeepEqual(g, w) {
		t.Errorf("%+v; want %+v", g, w)
	}
	ours, _ := got.ServiceConfig(false)
	if theirs, _ := want.ServiceConfig(false); string(ours) != string(theirs) {
		t.Errorf("%s\nwant\n%s", ours, theirs)
	}
}

// TestNamedPolicies_Elsewhere: gRPC sends one attempt where it does not know the policy.
func TestNamedPolicies_Elsewhere(t *testing.T) {
	t.Parallel()
	conn, err := grpcReads(t, `{"policies": [{"name": "reads", "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
		"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}],
		"methodConfig": [{"name": [{"service": "a.B", "method": "C"}], "timeout": "1s", "policy": "reads"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := grpcs(conn, "/a.B/C"); got != "timeout 1s, " {
		t.Errorf("gRPC reads %q; want the timeout alone", got)
	}
}

// TestNamedPolicies_Lint checks that advice on a policy of three entries appears only once.
func TestNamedPolicies_Lint(t *testing.T) {
	t.Parallel()
	wantLinted(t, strings.Replace(strings.Replace(named, "maxAttempts: 4", "maxAttempts: 9", 1), "timeout: 1s, ", "", 1),
		"warning f:4:30: methodConfig[0].retryPolicy.maxAttempts: 9: 3 to 5 are enough: five failures are not a short fault")
	wantLinted(t, strings.Replace(named, "policy: slow", "timeout: 1s", 1), "warning f:5:9: policies[1].name: slow: no entry refers to this policy")
	set := mustParse(t, "f", named)
	if list := set.Warnings(); len(list) > 0 {
		t.Errorf("%v", list)
	}
}
