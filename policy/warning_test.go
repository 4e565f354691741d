// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

func wantWarnings(t *testing.T, set *policy.Set, want []string) {
	t.Helper()
	got := set.Warnings()
	if len(got) != len(want) {
		t.Fatalf("Warnings = %v; want %v", got, want)
	}
	for i, w := range got {
		if w.String() != want[i] {
			t.Errorf("warning %d is\n%s\nwant\n%s", i, w, want[i])
		}
	}
}

const unsafe = " will be retried only if the attempt never left the client, since nothing declares them idempotent; " +
	`name the method in an entry, set idempotency_level in its .proto, or add "idempotency: ASSUME" to this entry`

const counted = ` not declared idempotent: retried only if the attempt never left the client; "stagger lint" names them, and says how to declare them`

func TestWarningsNotCarriedOut(t *testing.T) {
	t.Parallel()
	const (
		channel = " belongs to the channel and has no effect here: pass it to gRPC, with grpc.WithDefaultServiceConfig or from the resolver"
	)
	set := mustLoad(t, "all.yaml")
	wantWarnings(t, set, []string{
		"testdata/good/all.yaml:2:22: loadBalancingPolicy: round_robin:" + channel,
		"testdata/good/all.yaml:3:22: loadBalancingConfig:" + channel,
		"testdata/good/all.yaml:4:20: healthCheckConfig:" + channel,
		"testdata/good/all.yaml:5:20: connectionScaling:" + channel,
		`testdata/good/all.yaml:18:11: budgets[2].name: beside: no policy names this budget`,
		`testdata/good/all.yaml:20:11: budgets[3].name: refund: no policy names this budget`,
		`testdata/good/all.yaml:22:11: budgets[4].name: pooled: no policy names this budget`,
		`testdata/good/all.yaml:38:43: methodConfig[0].retryPolicy.retryableStatusCodes[1]: resource_exhausted: gRPC for Go refuses a service config with this spelling; write RESOURCE_EXHAUSTED`,
		`testdata/good/all.yaml:38:67: methodConfig[0].retryPolicy.retryableStatusCodes[3]: CANCELED: gRPC for Go refuses a service config with this spelling; write CANCELLED`,
	})
}

func TestWarningsCopied(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "loadBalancingPolicy: pick_first")
	set.Warnings()[0].Message = "changed"
	if got := set.Warnings()[0].Message; got == "changed" {
		t.Error("a caller changed a warning of the set")
	}
}

func TestWarningsUnsafeMethods(t *testing.T) {
	t.Parallel()
	const retry = "  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("/shop.Mall/Pay%02d", i))
	}
	for _, row := range []struct {
		name, text string
		counts     string
		want       []string // that lint names
	}{
		{"all methods declared", "methodConfig:\n- name: [{service: shop.Safe}]\n" + retry, "", nil},
		{"a name with method declares it", "methodConfig:\n- name: [{service: shop.Mixed, method: Pay}]\n" + retry, "", nil},
		{"no retries", "methodConfig:\n- name: [{service: shop.Mixed}]\n  timeout: 1s\n", "", nil},
		{"assumed by the entry", "methodConfig:\n- name: [{service: shop.Mixed}]\n  idempotency: ASSUME\n" + retry, "", nil},
		{"assumed by the file", "idempotency: ASSUME\nmethodConfig:\n- name: [{service: shop.Mixed}]\n" + retry, "", nil},
		{"switched off", "methodConfig:\n- name: [{service: shop.Mixed}]\n  idempotency: NONE\n" + retry, "", nil},
		{"some not declared", "methodConfig:\n- name: [{service: shop.Safe}, {service: shop.Mixed}]\n" + retry, "f:2:32: methodConfig: 2 methods", []string{
			`f:2:32: methodConfig[0].name[1]: "/shop.Mixed/": /shop.Mixed/Add, /shop.Mixed/Pay` + unsafe,
		}},
		{"one has an entry of its own", "methodConfig:\n- name: [{service: shop.Mixed}]\n" + retry +
			"- name: [{service: shop.Mixed, method: Pay}]\n", "f:2:10: methodConfig: 1 method", []string{
			`f:2:10: methodConfig[0].name[0]: "/shop.Mixed/": /shop.Mixed/Add` + unsafe,
		}},
		{"more than anyone reads", "methodConfig:\n- name: [{service: shop.Mall}]\n" + retry, "f:2:10: methodConfig: 25 methods", []string{
			`f:2:10: methodConfig[0].name[0]: "/shop.Mall/": ` + strings.Join(many, ", ") + " and 5 more" + unsafe,
		}},
		{"a service that is not linked in", "methodConfig:\n- name: [{service: un.Known}]\n" + retry, "f:2:10: methodConfig: methods of 1 name without descriptors", []string{
			`f:2:10: methodConfig[0].name[0]: "/un.Known/": methods` + unsafe,
		}},
		{
			"both", "methodConfig:\n- name: [{service: un.Known}, {service: shop.Mixed}, {service: un.Known2}]\n" + retry,
			"f:2:10: methodConfig: 2 methods and methods of 2 names without descriptors",
			[]string{
				`f:2:10: methodConfig[0].name[0]: "/un.Known/": methods` + unsafe,
				`f:2:31: methodConfig[0].name[1]: "/shop.Mixed/": /shop.Mixed/Add, /shop.Mixed/Pay` + unsafe,
				`f:2:54: methodConfig[0].name[2]: "/un.Known2/": methods` + unsafe,
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var counts []string
			if row.counts != "" {
				counts = []string{row.counts + counted}
			}
			wantWarnings(t, mustParse(t, "f", row.text), counts)
			var notes []string
			for _, want := range row.want {
				notes = append(notes, "note "+want)
			}
			wantLinted(t, row.text, notes...)
		})
	}
}

// TestLintOnlyDescriptors checks that services linked into the program are left out.
func TestLintOnlyDescriptors(t *testing.T) {
	t.Parallel()
	const everything = "methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, " +
		"retryableStatusCodes: [14]}}]"
	for only, want := range map[bool]string{false: "/shop.Mall/Pay00", true: `"/": /acme.parcels.v1.ParcelService/BurnParcel, /acme.parcels.v1.ParcelService/GetParcel,`} {
		list := policy.LintWith("f", []byte(everything), inside.LintOptions{
			Descriptors: []*protoregistry.Files{mustLoadDescriptors(t, parcels)}, OnlyDescriptors: only,
		})
		if len(list) != 1 || !strings.Contains(list[0].String(), want) || only && strings.Contains(list[0].String(), "shop.") {
			t.Errorf("only descriptors %v: %v; want one note with %s", only, list, want)
		}
	}
}

// TestWarningsDefaultEntry has the name for everything; services with their own entry are reported there.
func TestWarningsDefaultEntry(t *testing.T) {
	t.Parallel()
	const text = `
methodConfig:
- name: [{}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
- name: [{service: shop.Mall}]
`
	set := mustParse(t, "f", text)
	if w := set.Warnings(); len(w) != 1 || w[0].Severity != policy.SeverityNote || !strings.HasPrefix(w[0].Message, "2 methods not declared") {
		t.Errorf("Warnings = %v; want one note of the 2 methods of shop.Mixed", w)
	}
}

func TestWarningsIdempotencyKey(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
- name: [{service: a.B}]
  idempotencyKey: {}
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
`)
	if got := set.Warnings(); len(got) != 0 {
		t.Errorf("Warnings = %v", got)
	}
}

func TestWarningsEntryWithoutNames(t *testing.T) {
	t.Parallel()
	wantWarnings(t, mustParse(t, "f", "methodConfig:\n- timeout: 1s\n- {name: [], timeout: 1s}"), []string{
		"f:2:3: methodConfig[0]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
		"f:3:3: methodConfig[1]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
	})
	set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{}}})
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, []string{
		"methodConfig[0]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
	})
}
