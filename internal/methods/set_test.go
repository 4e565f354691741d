// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "{}")
	for _, row := range []struct {
		rule   string
		method string
		want   bool
	}{
		{"ASSUME", "/shop.Mixed/Pay", true},
		{"ASSUME", "/un.Known/Method", true},
		{"NONE", "/shop.Mixed/Get", false},
		{"DECLARED", "/shop.Mixed/Get", true},
		{"DECLARED", "/shop.Mixed/Pay", false},
		{"", "/shop.Mixed/Get", true},
	} {
		if got := set.Safe(policyOf(t, spec.Policy{Idempotency: row.rule}), row.method); got != row.want {
			t.Errorf("%v: Safe(%q) = %v; want %v", row.rule, row.method, got, row.want)
		}
	}
}

// A compiled set finds the same policies as the set.
func TestLookup(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "methodConfig: [{name: [{service: a.B}, {service: a.B, method: C}, {service: a.E}]}]")
	for method, index := range map[string]int{"/a.B/C": 1, "/a.B/D": 0, "/a.E/F": 2, "/g.H/I": -1} {
		p := set.Lookup(method)
		if index < 0 {
			if p != nil {
				t.Errorf("%s: %v; want nothing", method, p.Name())
			}
			continue
		}
		if p != set.Policies()[index] {
			t.Errorf("%s: %v; want number %d", method, p.Name(), index)
		}
		if own := policyOf(t, compiled.Of(p).Policy); own.Name() != "" {
			t.Errorf("%s: a policy on its own has the name %s", method, own.Name())
		}
	}
}

// An entry for all other methods is not counted, next to entries that name some, if no descriptor says what the others are.
func TestWarnings_Undeclared(t *testing.T) {
	t.Parallel()
	const retry = "retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}}\n"
	const all, one = "- {name: [{}], " + retry, "- {name: [{service: a.B, method: C}], " + retry
	for text, want := range map[string]int{all: 1, all + one: 0, one: 0} {
		set := testkit.Must(policy.Parse("f", []byte("defaultTimeout: 9s\nmethodConfig:\n"+text)))(t)
		if got := methods.DescribeBy(set, methods.Descriptors{Only: true}).Warnings(); len(got) != want {
			t.Errorf("%s%v; want %d notes", text, got, want)
		}
	}
}

func TestModeOfSet(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "mode: OBSERVE\nmethodConfig: [{name: [{}], mode: OFF}]")
	if set.Mode() != policy.ModeObserve {
		t.Errorf("mode %v; want that of all calls", set.Mode())
	}
}
