// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
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
      maxPushback: 60s, minAttemptTime: 0.001s, chain: ONCE, waitForReadyOnRetry: true, maxConnectionWait: 7s, firstRetry: AT_ONCE,
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
	config, _ := mustParse(t, "f", exported).ServiceConfig(true)
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
	_, notes := mustParse(t, "f", exported).ServiceConfig(true)
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
		"methodConfig[0].retryPolicy.firstRetry AT_ONCE",
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
	_, notes := set.ServiceConfig(true)
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
	_, notes := set.ServiceConfig(true)
	if len(notes) != 1 || notes[0].Field != "methodConfig[0].idempotency" || notes[0].Value != "DECLARED" {
		t.Errorf("notes: %v; want one, that gRPC repeats the service's methods", notes)
	}
}

const someUnsafe = `
methodConfig:
  - name: [{service: a.B}, {service: a.B, method: C}]
    timeout: 2s
    retryPolicy: &retry {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1,
      retryableStatusCodes: [UNAVAILABLE], jitter: PROPORTIONAL, commitOn: HEADERS, budget: NONE}
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
  - name: [{service: acme.parcels.v1.ParcelService}]
    retryPolicy: *retry
  - name: [{}]
    idempotency: ASSUME
    retryPolicy: *retry
`

// TestServiceConfigLeavesUnsafeOut covers each reason not to be idempotent, and entries that stay to hide the one for
// everything.
func TestServiceConfigLeavesUnsafeOut(t *testing.T) {
	t.Parallel()
	set := mustDescribe(t, mustParse(t, "f", someUnsafe), mustLoadDescriptors(t, parcels))
	config, notes := set.ServiceConfig(false)
	const retry = `"retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`
	const want = `{
  "methodConfig": [
    {"name": [{"service": "a.B", "method": "C"}], "timeout": "2s", ` + retry + `},
    {"name": [{"service": "a.B"}], "timeout": "2s"},
    {"name": [{"service": "a.N", "method": "M"}]},
    {"name": [{"service": "a.K", "method": "M"}]},
    {"name": [{"service": "a.K", "method": "Assumed"}], ` + retry + `},
    {"name": [{"service": "acme.parcels.v1.ParcelService", "method": "ListParcels"}], ` + retry + `},
    {"name": [{"service": "acme.parcels.v1.ParcelService"}]},
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
		"methodConfig[4].name[0]: /acme.parcels.v1.ParcelService/: retryPolicy left out: nothing declares it idempotent, but for ListParcels",
	}
	if !slices.Equal(got, wantNotes) {
		t.Errorf("notes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantNotes, "\n"))
	}
	conn := must.Get(grpcReads(t, string(config)))(t)
	compiled := decision.Compile(set)
	for _, method := range []string{"/a.B/C", "/a.B/D", "/a.N/M", "/a.K/M", "/a.K/Assumed", "/x.Y/Z"} {
		safe := compiled.Safe(compiled.Lookup(method), method) && method != "/a.K/M"
		if repeats := conn.GetMethodConfig(method).RetryPolicy != nil; repeats != safe {
			t.Errorf("%s: gRPC repeats it: %v; want %v", method, repeats, safe)
		}
	}
}

// TestServiceConfigAssumedKeys has keys in a file that assumes all methods to be idempotent.
func TestServiceConfigAssumedKeys(t *testing.T) {
	t.Parallel()
	all, _ := mustParse(t, "f", "idempotency: ASSUME"+strings.ReplaceAll(someUnsafe, "idempotency: NONE", "")).ServiceConfig(true)
	safe, _ := mustParse(t, "f", "idempotency: ASSUME"+strings.ReplaceAll(someUnsafe, "idempotency: NONE", "")).ServiceConfig(false)
	if string(all) != string(safe) {
		t.Errorf("%s\nwithout what is assumed:\n%s", all, safe)
	}
}

// TestServiceConfig_Packages checks that a package becomes its known services, and nothing else.
func TestServiceConfig_Packages(t *testing.T) {
	t.Parallel()
	const text = `
methodConfig:
- name: [{service: acme.parcels.*}, {service: un.known.*}]
  timeout: 1s
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
- name: [{service: un.known.v2.*}]
  timeout: 2s
`
	set := mustDescribe(t, mustParse(t, "f", text), mustLoadDescriptors(t, parcels))
	if p := set.Lookup("/acme.parcels.v1.ParcelService/GetParcel"); p.Name() != "/acme.parcels.*/" {
		t.Errorf("GetParcel has the policy of %v; want the package's before the API's own", p.Name())
	}
	config, notes := set.ServiceConfig(false)
	conn, err := grpcReads(t, string(config))
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	for method, want := range map[string]string{
		"ListParcels": "timeout 1s, 3 attempts", "SendParcel": "timeout 1s, ",
	} {
		if got := grpcs(conn, "/acme.parcels.v1.ParcelService/"+method); !strings.HasPrefix(got, want) || strings.Contains(got, "attempts") != strings.Contains(want, "attempts") {
			t.Errorf("%s: gRPC reads %q; want %q", method, got, want)
		}
	}
	if strings.Contains(string(config), "*") || strings.Contains(string(config), "null") || strings.Contains(string(config), "2s") {
		t.Errorf("%s\nwant no package, and no entry without names", config)
	}
	var unknown []string
	for _, n := range notes {
		if strings.Contains(n.Message, "gRPC knows no packages") {
			unknown = append(unknown, n.Field+" "+n.Value)
		}
	}
	if want := []string{"methodConfig[0].name[1] /un.known.*/", "methodConfig[1].name[0] /un.known.v2.*/"}; !slices.Equal(unknown, want) {
		t.Errorf("%q; want %q", unknown, want)
	}
	for _, d := range policy.LintWith("f", []byte(text), inside.LintOptions{OtherClients: true}) {
		if strings.Contains(d.Message, "stagger export") {
			t.Errorf("%s: gRPC finds nothing by a package", d)
		}
	}
}

// TestGRPCReads_Packages: for gRPC, a file with packages is a service config without policies for their methods.
func TestGRPCReads_Packages(t *testing.T) {
	t.Parallel()
	conn := must.Get(grpcReads(t, `{"methodConfig": [{"name": [{"service": "acme.parcels.v1.*"}], "timeout": "1s"}]}`))(t)
	if got := grpcs(conn, "/acme.parcels.v1.ParcelService/ListParcels"); got != "" {
		t.Errorf("gRPC reads %s", got)
	}
}

func TestLintElsewhere(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range policy.LintWith("f", []byte(someUnsafe), inside.LintOptions{
		Descriptors: []*protoregistry.Files{mustLoadDescriptors(t, parcels)}, OtherClients: true,
	}) {
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
		`f:17:12: methodConfig[4].name[0]: "/acme.parcels.v1.ParcelService/": ` + says + "(nothing declares it idempotent, but for ListParcels)" + remedy,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
