// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/spec"
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
		if got := set.Safe(compiled(t, spec.Policy{Idempotency: row.rule}), row.method); got != row.want {
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
		if own := compiled(t, p.Compiled().Policy); own.Name() != "" {
			t.Errorf("%s: a policy on its own has the name %s", method, own.Name())
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
