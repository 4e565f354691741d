// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func TestMode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file, entry string
		mode        policy.Mode
	}{
		"nothing said":             {"", "", policy.ModeEnforce},
		"of the file":              {"mode: OBSERVE", "", policy.ModeObserve},
		"of the entry":             {"", "mode: off", policy.ModeOff},
		"the stricter is the file": {"mode: OFF", "mode: OBSERVE", policy.ModeOff},
		"the stricter is the entry": {
			"mode: ENFORCE", "mode: OBSERVE", policy.ModeObserve,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, "f", row.file+"\nmethodConfig:\n- name: [{service: a.B}]\n  "+row.entry)
			p := methods.Describe(set).Lookup("/a.B/C")
			if p.Mode() != row.mode {
				t.Errorf("mode %v; want %v", p.Mode(), row.mode)
			}
		})
	}
}

// YAML 1.1 has words for booleans. Of the words of a policy file, only OFF is one of them, and what tools write for it counts as OFF.
func TestModeOfYAML11(t *testing.T) {
	t.Parallel()
	enums := (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor().ParentFile().Enums()
	booleans := regexp.MustCompile(`(?i)_(y|n|yes|no|true|false|on|off)$`)
	for i := range enums.Len() {
		for j := range enums.Get(i).Values().Len() {
			if name := enums.Get(i).Values().Get(j).Name(); booleans.MatchString(string(name)) && name != "MODE_OFF" {
				t.Errorf("YAML 1.1 reads the end of %s as a boolean", name)
			}
		}
	}
	const says = `: is taken as OFF, which tools that read YAML 1.1, such as Helm, turn into false; write "OFF" in quotes`
	for _, written := range []string{"false", "False", `"false"`} {
		set := mustParse(t, "f", "methodConfig: [{name: [{service: a.B}], mode: "+written+"}]\nmode: "+written)
		if got := compiled.Of(set.Lookup("/a.B/C")).Mode + compiled.OfSet(set).Mode; got != "OFFOFF" {
			t.Errorf("mode: %s is read as %s", written, got)
		}
		wantWarnings(t, set, []string{"f:1:47: methodConfig[0].mode: " + written + says, "f:2:7: mode: " + written + says})
	}
	for _, written := range []string{"off", "Off", `"OFF"`} {
		if set := mustParse(t, "f", "mode: "+written); compiled.OfSet(set).Mode != "OFF" || len(set.Warnings()) > 0 {
			t.Errorf("mode: %s is read as %s, with warnings %v", written, compiled.OfSet(set).Mode, set.Warnings())
		}
	}
}

// The greater of two modes, alphabetically, is the stricter.
func TestMode_Order(t *testing.T) {
	t.Parallel()
	modes := []policy.Mode{"", policy.ModeEnforce, policy.ModeObserve, policy.ModeOff}
	if !slices.IsSorted(modes) {
		t.Errorf("%q are not in the order of their strictness", modes)
	}
}

func TestStrictestMode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		of   []policy.Mode
		want policy.Mode
	}{
		{nil, policy.ModeEnforce},
		{[]policy.Mode{""}, policy.ModeEnforce},
		{[]policy.Mode{policy.ModeEnforce, policy.ModeObserve}, policy.ModeObserve},
		{[]policy.Mode{policy.ModeOff, policy.ModeObserve, ""}, policy.ModeOff},
	} {
		if got := policy.StrictestMode(row.of...); got != row.want {
			t.Errorf("%q: %s; want %s", row.of, got, row.want)
		}
	}
}
