// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

func TestMode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file, entry string
		mode        policy.Mode
		percent     float64
	}{
		"nothing said":             {"", "", policy.ModeEnforce, 100},
		"of the file":              {"mode: OBSERVE", "", policy.ModeObserve, 100},
		"of the entry":             {"", "mode: off", policy.ModeOff, 100},
		"the stricter is the file": {"mode: OFF", "mode: OBSERVE", policy.ModeOff, 100},
		"the stricter is the entry": {
			"mode: ENFORCE\npercent: 50", "mode: OBSERVE", policy.ModeObserve, 50,
		},
		"the smaller percentage": {"percent: 10", "percent: 12.5", policy.ModeEnforce, 10},
		"of no call":             {"percent: 99.9999", "percent: 0", policy.ModeEnforce, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, "f", row.file+"\nmethodConfig:\n- name: [{service: a.B}]\n  "+row.entry)
			p := decision.Compile(set).Lookup("/a.B/C")
			if p.Mode() != row.mode || p.Percent() != row.percent {
				t.Errorf("mode %v, %v %%; want %v, %v %%", p.Mode(), p.Percent(), row.mode, row.percent)
			}
		})
	}
}

// Modes written in Go are checked like those in a file.
func TestModeInGo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spec policy.Spec
		want string
	}{
		"a mode that there is not": {policy.Spec{Mode: "ON"}, `mode: "ON": must be ENFORCE, OBSERVE or OFF`},
		"less than none":           {policy.Spec{Percent: new(-0.5)}, "percent: -0.5: must be 0 to 100"},
		"more than all":            {policy.Spec{Percent: new(100.5)}, "percent: 100.5: must be 0 to 100"},
		"too fine":                 {policy.Spec{Percent: new(0.00001)}, "percent: 1e-05: must have at most 4 decimals, such as 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := policy.New(row.spec); err == nil || err.Error() != row.want {
				t.Errorf("%v; want %s", err, row.want)
			}
		})
	}
	percent := 50.0
	p, err := policy.New(policy.Spec{Percent: &percent})
	if percent = 1; err != nil || *p.Spec().Percent != 50 {
		t.Errorf("a policy changes with what its spec was made from: %v, %v", p, err)
	}
}

// Policies that come with APIs obey the file's mode.
func TestModeOfAPIPolicies(t *testing.T) {
	t.Parallel()
	set := mustDescribe(t, mustParse(t, "f", "mode: OFF\npercent: 5"), mustLoadDescriptors(t, parcels))
	if len(set.Policies()) == 0 {
		t.Fatal("parcels.proto ships no policy")
	}
	for _, p := range decision.Compile(set).Policies() {
		if p.Mode() != policy.ModeOff || p.Percent() != 5 {
			t.Errorf("%v: mode %v, %v %%", p.Name(), p.Mode(), p.Percent())
		}
	}
}

const modes = `methodConfig: [
{name: [{service: a.B, method: Off}], mode: OFF, retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [14]}},
{name: [{service: a.B, method: Trial}], mode: OBSERVE, timeout: 1s, hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}},
{name: [{service: a.B, method: None}], percent: 0, retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [14]}},
{name: [{service: a.B, method: Some}], percent: 5, hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}},
{name: [{service: a.B, method: Plain}], mode: OFF, timeout: 1s}]`

// Clients without modes get only the policies that are enforced.
func TestServiceConfigModes(t *testing.T) {
	t.Parallel()
	const want = `{"methodConfig": [
		{"name": [{"service": "a.B", "method": "Off"}]},
		{"name": [{"service": "a.B", "method": "Trial"}], "timeout": "1s"},
		{"name": [{"service": "a.B", "method": "None"}]},
		{"name": [{"service": "a.B", "method": "Some"}], "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "1s"}},
		{"name": [{"service": "a.B", "method": "Plain"}], "timeout": "1s"}]}`
	for _, assume := range []bool{true, false} {
		config, notes := mustParse(t, "f", modes).ServiceConfig(assume)
		if got := strings.Join(strings.Fields(string(config)), ""); got != strings.Join(strings.Fields(want), "") {
			t.Errorf("ServiceConfig(%v) =\n%s", assume, config)
		}
		for _, want := range []string{
			"methodConfig[0].retryPolicy: left out: the mode is OFF",
			"methodConfig[1].hedgingPolicy: left out: the mode is OBSERVE",
			"methodConfig[2].retryPolicy: left out: percent is 0",
			"methodConfig[3].percent: 5: gRPC follows the policy in all calls",
		} {
			if !slices.ContainsFunc(notes, func(d policy.Diagnostic) bool { return d.String() == want }) {
				t.Errorf("notes %v; want %s", notes, want)
			}
		}
		if slices.ContainsFunc(notes, func(d policy.Diagnostic) bool { return strings.Contains(d.Field, "[4]") }) {
			t.Errorf("notes %v: nothing is left out of an entry without retries", notes)
		}
	}
}

func TestServiceConfigModeOfFile(t *testing.T) {
	t.Parallel()
	config, _ := mustParse(t, "f", "mode: OFF\n"+modes).ServiceConfig(true)
	if strings.Contains(string(config), "Policy") {
		t.Errorf("a file that is off is exported with policies:\n%s", config)
	}
}

func TestLintModes(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range policy.LintWith("f", []byte(modes), inside.LintOptions{OtherClients: true}) {
		if strings.Contains(d.Message, "other gRPC clients") {
			got = append(got, d.Field+" "+d.Message[strings.Index(d.Message, "("):strings.Index(d.Message, ";")])
		}
	}
	want := []string{
		"methodConfig[0].retryPolicy (the mode is OFF)",
		"methodConfig[1].hedgingPolicy (the mode is OBSERVE)",
		"methodConfig[2].retryPolicy (percent is 0)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
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
