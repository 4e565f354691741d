// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// linted returns the diagnostics of Lint on a file.
func linted(text string) []string {
	var list []string
	for _, d := range policy.Lint("f", []byte(text)) {
		list = append(list, string(d.Severity)+" "+d.String())
	}
	return list
}

func wantLinted(t *testing.T, text string, want ...string) {
	t.Helper()
	if got := linted(text); !slices.Equal(got, want) {
		t.Errorf("%s\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLintAdmission(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{"admission: REFUSE, timeout: 1s", ""},
		{"admission: REFUSE, timeout: 1s, criticality: CRITICAL", ""},
		{"admission: NONE", ""},
		{"admission: REFUSE", "f:1:63: methodConfig[0].admission: REFUSE: calls without a deadline are never refused; set a timeout"},
		{"admission: AUTO, timeout: 1s, criticality: SHEDDABLE", ""},
		{"admission: AUTO", "f:1:63: methodConfig[0].admission: AUTO: calls without a deadline are never refused; set a timeout"},
		{"criticality: SHEDDABLE", "f:1:65: methodConfig[0].criticality: SHEDDABLE: has no effect without admission REFUSE or AUTO, or sendCriticality"},
		{"criticality: SHEDDABLE, sendCriticality: true", ""},
	} {
		entry, want := row[0], row[1]
		list := policy.Lint("f", []byte("methodConfig: [{name: [{service: a.B, method: C}], "+entry+"}]"))
		var got strings.Builder
		for _, d := range list {
			got.WriteString(d.String())
		}
		if got.String() != want {
			t.Errorf("%s: %q; want %q", entry, got.String(), want)
		}
	}
}

func TestLintPatterns(t *testing.T) {
	t.Parallel()
	const says = " matches nothing: the only pattern is a package, such as {service: acme.orders.v1.*}; a service without a method stands for all its " +
		"methods, and {} for everything"
	wantLinted(t, `methodConfig: [{timeout: 1s, name: [{service: "*"}, {service: a.B, method: "Get*"}, {service: a.B, method: C}]}]`,
		`warning f:1:47: methodConfig[0].name[0].service: "*":`+says, `warning f:1:76: methodConfig[0].name[1].method: "Get*":`+says)
}

func TestLintRepeatedCodes(t *testing.T) {
	t.Parallel()
	wantLinted(t, `
methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy:
    maxAttempts: 3
    initialBackoff: 1s
    maxBackoff: 1s
    backoffMultiplier: 1
    retryableStatusCodes: [UNAVAILABLE, ABORTED, 14]
    perCode: [{codes: [ABORTED, ABORTED], costFactor: 2}]
    codeOverrides: [{codes: [UNKNOWN, 2], as: ABORTED}]
- name: [{service: a.B, method: D}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s, nonFatalStatusCodes: [ABORTED, UNAVAILABLE, ABORTED]}
`,
		"warning f:9:50: methodConfig[0].retryPolicy.retryableStatusCodes[2]: 14: is listed twice; remove it",
		"warning f:10:33: methodConfig[0].retryPolicy.perCode[0].codes[1]: ABORTED: is listed twice; remove it",
		"warning f:11:39: methodConfig[0].retryPolicy.codeOverrides[0].codes[1]: 2: is listed twice; remove it",
		"warning f:13:97: methodConfig[1].hedgingPolicy.nonFatalStatusCodes[2]: ABORTED: is listed twice; remove it")
}

// TestLintReserve has budgets that can just pay for an attempt after a timeout, and budgets that just can't.
func TestLintReserve(t *testing.T) {
	t.Parallel()
	file := func(budgets, more string) string {
		return "budgets: [{name: b, " + budgets + `}]
methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE],
    perAttemptTimeout: 1s` + more + "}\n"
	}
	const says = "warning f:5:24: methodConfig[0].retryPolicy.perAttemptTimeout: 1s: a client that makes few calls never sends another attempt " +
		"after it: that costs "
	const remedy = " for such a client; raise minPerSecond or window, or lower timeoutCost"
	wantLinted(t, file("ratio: {minPerSecond: 0.4, window: 10s}", ", budget: b"))
	wantLinted(t, file("ratio: {minPerSecond: 0.3, window: 10s}", ", budget: b"), says+"4, and budget b has 3.1"+remedy)
	wantLinted(t, file("ratio: {minPerSecond: 1, window: 10s, timeoutCost: 10.2}", ", budget: b"), says+"10.2, and budget b has 10.1"+remedy)
	wantLinted(t, strings.Replace(file("ratio: {}", ", budget: b, perCode: [{codes: [DEADLINE_EXCEEDED], costFactor: 3}]"), "[UNAV", "[DEADLINE_EXCEEDED, UNAV", 1),
		says+"12, and budget b has 4.1"+remedy)
	wantLinted(t, file("refund: {}", ", budget: b"))
	wantLinted(t, strings.Replace(file("ratio: {minPerSecond: 0.4}", ", budget: b"), "perAttemptTimeout: 1s", "jitter: FULL", 1))
}

func TestLintKubernetesObjects(t *testing.T) {
	t.Parallel()
	wantLinted(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: retry}\ndata:\n  retry.yaml: |\n    methodConfig: []\n",
		"error f:2:7: kind: ConfigMap: is a whole Kubernetes object; the policy file is in its data: lint its data, "+
			`as with kubectl get configmap NAME -o jsonpath='{.data.retry\.yaml}' | stagger lint -`)
	wantLinted(t, `{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": {}}`,
		"error f:1:50: kind: VirtualService: is a whole Kubernetes object, and no policy file, which has keys such as methodConfig; lint its data, if that has one")
	if got := linted("kind: ConfigMap\n"); len(got) != 1 || !strings.Contains(got[0], "unknown key") {
		t.Errorf("%q; want an unknown key", got)
	}
}

func TestLintPool(t *testing.T) {
	t.Parallel()
	file := func(fleet, more string) string {
		return "budgets: [{name: b, ratio: {" + fleet + "}}]\n" + `methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [ABORTED, DEADLINE_EXCEEDED],
    budget: b` + more + "}\n"
	}
	note := func(rate string) string {
		return "note f:1:36: budgets[0].ratio.fleet: the reserve is leased from pool orders, which has " + rate + " extra attempts a second for all " +
			"processes together; programs need interceptor.WithFleet(redisbudget.New(client)), or refuse the file"
	}
	says := func(costs, holds string) string {
		return "warning f:4:16: methodConfig[0].retryPolicy: pool orders never pays for its most expensive attempt: that costs " + costs +
			", and the pool holds " + holds + "; raise perSecond, or lower timeoutCost or costFactor"
	}
	wantLinted(t, file("fleet: {name: orders, perSecond: 0.5}", ", perAttemptTimeout: 1s"), note("0.5"))
	wantLinted(t, file("fleet: {name: orders, perSecond: 0.5}, timeoutCost: 10.5", ""), note("0.5"))
	wantLinted(t, file("fleet: {name: orders, perSecond: 0.5}, timeoutCost: 10.5", ", perAttemptTimeout: 1s"), note("0.5"), says("10.5", "10"))
	wantLinted(t, file("fleet: {name: orders, perSecond: 11}", ", perAttemptTimeout: 1s, perCode: [{codes: [DEADLINE_EXCEEDED], costFactor: 3}]"), note("11"), says("12", "11"))
	wantLinted(t, file("fleet: {name: orders, perSecond: 15}", ", perCode: [{codes: [ABORTED], costFactor: 15.5}]"), note("15"), says("15.5", "15"))
}

func TestLintPackages(t *testing.T) {
	t.Parallel()
	wantLinted(t, "methodConfig: [{timeout: 1s, name: [{service: acme.orders.v1}, {service: acme.orders.v1beta2, method: Get}, {service: v2.V1}]}]",
		"warning f:1:47: methodConfig[0].name[0].service: acme.orders.v1: is the name of a package, and matches nothing: write acme.orders.v1.* for all its services, or the full name of one",
		"warning f:1:74: methodConfig[0].name[1].service: acme.orders.v1beta2: is the name of a package, and matches nothing: write acme.orders.v1beta2.* for all its services, or the full name of one")
}

func TestLintMultiplier(t *testing.T) {
	t.Parallel()
	const entry = "methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, " +
		"retryableStatusCodes: [14], backoffMultiplier: "
	wantLinted(t, entry+"0.5}}]", "warning f:1:165: methodConfig[0].retryPolicy.backoffMultiplier: 0.5: makes each wait shorter than the last; 2 doubles it, 1 keeps it")
	wantLinted(t, entry+"1}}]")
}

func TestLintIgnoreAdvice(t *testing.T) {
	t.Parallel()
	entry := func(more string) string {
		return "methodConfig:\n- name: [{service: a.B}]\n  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, " +
			"retryableStatusCodes: [UNAVAILABLE], budget: NONE}\n" + more
	}
	const budget = "warning f:3:136: methodConfig[0].retryPolicy.budget: NONE: nothing bounds what all calls together add in an outage, " +
		"but maxAttempts: up to 3 times the load"
	const unsafe = `note f:2:10: methodConfig[0].name[0]: "/a.B/": methods` + unsafe
	wantLinted(t, entry(""), unsafe, budget)
	wantLinted(t, entry("  ignoreAdvice: [{on: retryPolicy.budget, reason: the sidecar bounds it}]\n"), unsafe)
	wantLinted(t, entry(`  ignoreAdvice: [{on: retryPolicy.budget, reason: "so"}, {on: "name[0]", reason: "so"}]`+"\n"))
	wantLinted(t, entry("  ignoreAdvice: [{on: retryPolicy.maxAttempts, reason: so}]\n"), unsafe, budget,
		"warning f:4:23: methodConfig[0].ignoreAdvice[0].on: retryPolicy.maxAttempts: there is no advice on this key of the entry; remove it")
}
