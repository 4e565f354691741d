// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
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

func TestWarningsNotCarriedOut(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "all.yaml")
	wantWarnings(t, set, []string{
		"testdata/good/all.yaml:5:20: connectionScaling: belongs to the channel and has no effect here: gRPC for Go does not have it",
		`testdata/good/all.yaml:16:11: budgets[2].name: beside: no policy names this budget`,
		`testdata/good/all.yaml:30:43: methodConfig[0].retryPolicy.retryableStatusCodes[1]: resource_exhausted: gRPC for Go refuses a service config with this spelling; write RESOURCE_EXHAUSTED`,
		`testdata/good/all.yaml:30:67: methodConfig[0].retryPolicy.retryableStatusCodes[3]: CANCELED: gRPC for Go refuses a service config with this spelling; write CANCELLED`,
	})
}

func TestWarningsCopied(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "healthCheckConfig: {serviceName: a.B}")
	wantWarnings(t, set, []string{"f:1:20: healthCheckConfig: has no effect without loadBalancingConfig, such as [{round_robin: {}}]: " +
		"gRPC's usual load balancing, pick_first, asks no server for its health"})
	set.Warnings()[0].Message = "changed"
	if got := set.Warnings()[0].Message; got == "changed" {
		t.Error("a caller changed a warning of the set")
	}
}

func TestWarningsEntryWithoutNames(t *testing.T) {
	t.Parallel()
	wantWarnings(t, mustParse(t, "f", "methodConfig:\n- timeout: 1s\n- {name: [], timeout: 1s}"), []string{
		"f:2:3: methodConfig[0]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
		"f:3:3: methodConfig[1]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
	})
	set, err := compiled.NewSet(spec.Config{Methods: []spec.MethodConfig{{}}})
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, []string{
		"methodConfig[0]: names nothing, and is never used; name methods, a service or {} for everything, or remove it",
	})
}

func TestWarningsPatterns(t *testing.T) {
	t.Parallel()
	const says = "matches nothing: there are no patterns; a service without a method stands for all its methods, and {} for everything"
	wantWarnings(t, mustParse(t, "f", `methodConfig: [{timeout: 1s, name: [{service: "a.*"}, {service: a.B, method: "Get*"}, {service: a.B, method: C}]}]`), []string{
		`f:1:47: methodConfig[0].name[0].service: "a.*": ` + says, `f:1:78: methodConfig[0].name[1].method: "Get*": ` + says,
	})
	set, err := compiled.NewSet(spec.Config{Methods: []spec.MethodConfig{{Names: []string{"/a.*/", "/a.B/Get List"}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, []string{
		`methodConfig[0].name[0]: "/a.*/": ` + says,
		`methodConfig[0].name[1]: "/a.B/Get List": matches nothing: it has a blank after "Get", and a name is one word`,
	})
}

func TestWarningsCut(t *testing.T) {
	t.Parallel()
	const policies = "retryPolicy: {maxAttempts: 6, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}}\n" +
		"- {name: [{service: a.D}, {service: a.E}], hedgingPolicy: {maxAttempts: 7}}\n"
	const text = "methodConfig:\n- {name: [{service: a.B}, {service: a.C}], " + policies
	wantWarnings(t, mustParse(t, "f", text), []string{
		"f:2:71: methodConfig[0].retryPolicy.maxAttempts: 6: is cut to 5, unless a higher maxAttemptsLimit allows more",
		"f:3:73: methodConfig[1].hedgingPolicy.maxAttempts: 7: is cut to 5, unless a higher maxAttemptsLimit allows more",
	})
	wantWarnings(t, mustParse(t, "f", text+"maxAttemptsLimit: 6"), []string{
		"f:3:73: methodConfig[1].hedgingPolicy.maxAttempts: 7: is cut to 6, unless a higher maxAttemptsLimit allows more",
	})
}

// Only in retryableStatusCodes does the spelling of a code matter to gRPC for Go: it reads neither perCode nor hedgingPolicy.
func TestWarningsSpelling(t *testing.T) {
	t.Parallel()
	wantWarnings(t, mustParse(t, "f", "methodConfig:\n- {name: [{service: a.B}], hedgingPolicy: {maxAttempts: 2, nonFatalStatusCodes: [unavailable]}}\n"+
		"- {name: [{service: a.C}], retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2,\n"+
		"    retryableStatusCodes: [Unavailable], perCode: [{codes: [unavailable]}]}}\n"), []string{
		"f:4:28: methodConfig[1].retryPolicy.retryableStatusCodes[0]: Unavailable: gRPC for Go refuses a service config with this spelling; write UNAVAILABLE",
	})
}

func TestPlace(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "methodConfig:\n- name: [{service: a.B}, {}]\n- name:\n  - {service: a.B, method: C}\n")
	for name, want := range map[string]string{
		"/a.B/": "f:2:10: methodConfig[0].name[0]: ", "/": "f:2:26: methodConfig[0].name[1]: ",
		"/a.B/C": "f:4:5: methodConfig[1].name[0]: ", "/a.B/D": "",
	} {
		if got := compiled.OfSet(set).NamesAt[name].String(); got != want {
			t.Errorf("%s is at %q; want %q", name, got, want)
		}
	}
}
