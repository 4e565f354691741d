// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

func TestDeniesTransparentRetry(t *testing.T) {
	t.Parallel()
	const entry = "methodConfig: [{name: [{service: shop.Mixed}, {service: shop.Mixed, method: Add}]"
	for name, row := range map[string]struct {
		file, method string
		want         bool
	}{
		"nobody says anything":            {entry + "}]", "/shop.Mixed/Pay", false},
		"the entry":                       {entry + ", transparentRetry: DENY}]", "/shop.Mixed/Pay", true},
		"the file":                        {"transparentRetry: deny\n" + entry + "}]", "/shop.Mixed/Pay", true},
		"the entry wins":                  {"transparentRetry: DENY\n" + entry + ", transparentRetry: ALLOW}]", "/shop.Mixed/Pay", false},
		"the entry wins, the other way":   {"transparentRetry: ALLOW\n" + entry + ", transparentRetry: DENY}]", "/shop.Mixed/Pay", true},
		"a method by name is safe":        {"transparentRetry: DENY\n" + entry + "}]", "/shop.Mixed/Add", false},
		"unless the entry says otherwise": {entry + ", idempotency: NONE, transparentRetry: DENY}]", "/shop.Mixed/Add", true},
		"its descriptor declares it safe": {entry + ", transparentRetry: DENY}]", "/shop.Mixed/Get", false},
		"the entry declares it safe":      {entry + ", idempotency: ASSUME, transparentRetry: DENY}]", "/shop.Mixed/Pay", false},
		"it has a key":                    {entry + ", idempotencyKey: {}, transparentRetry: DENY}]", "/shop.Mixed/Pay", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, row.file)
			if got := set.DeniesTransparentRetry(set.Lookup(row.method), row.method); got != row.want {
				t.Errorf("%v; want %v", got, row.want)
			}
		})
	}
}

// A policy outside any set follows the file, unless it has its own setting.
func TestDeniesTransparentRetryOfOtherPolicies(t *testing.T) {
	t.Parallel()
	deny, none := mustParse(t, "transparentRetry: DENY"), mustParse(t, "{}")
	for name, row := range map[string]struct {
		set  *decision.Set
		said *bool
		want bool
	}{
		"the file":        {deny, nil, true},
		"nobody":          {none, nil, false},
		"the policy":      {none, new(false), true},
		"the policy wins": {deny, new(true), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compiled(t, policy.Spec{TransparentRetry: row.said})
			if got := row.set.DeniesTransparentRetry(p, "/shop.Mixed/Pay"); got != row.want {
				t.Errorf("%v; want %v", got, row.want)
			}
			if row.set.DeniesTransparentRetry(p, "/shop.Mixed/Get") {
				t.Error("a method is denied transparent retries that its descriptor declares safe")
			}
			if row.said == nil && row.set.DeniesTransparentRetry(nil, "/shop.Mixed/Pay") != row.want {
				t.Errorf("without a policy: %v; want %v", !row.want, row.want)
			}
		})
	}
}

func TestSafe(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "{}")
	for _, row := range []struct {
		rule   policy.Idempotency
		method string
		want   bool
	}{
		{policy.IdempotencyAssume, "/shop.Mixed/Pay", true},
		{policy.IdempotencyAssume, "/un.Known/Method", true},
		{policy.IdempotencyNone, "/shop.Mixed/Get", false},
		{policy.IdempotencyDeclared, "/shop.Mixed/Get", true},
		{policy.IdempotencyDeclared, "/shop.Mixed/Pay", false},
		{"", "/shop.Mixed/Get", true},
	} {
		if got := set.Safe(compiled(t, policy.Spec{Idempotency: row.rule}), row.method); got != row.want {
			t.Errorf("%v: Safe(%q) = %v; want %v", row.rule, row.method, got, row.want)
		}
	}
}

// A compiled set finds the same policies as the set, and knows which of them come from the file.
func TestLookup(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "methodConfig: [{name: [{service: a.B}, {service: a.B, method: C}, {service: a.*}]}]")
	for method, index := range map[string]int{"/a.B/C": 1, "/a.B/D": 0, "/a.E/F": 2, "/g.H/I": -1} {
		p := set.Lookup(method)
		if index < 0 {
			if p != nil {
				t.Errorf("%s: %v; want nothing", method, p.Name())
			}
			continue
		}
		if p.Index() != index || p != set.Policies()[index] || p.Name() != set.Set.Lookup(method).Name() || !set.Configured(p) {
			t.Errorf("%s: number %d, for %v; want %d", method, p.Index(), p.Name(), index)
		}
		if own := decision.New(*p.Spec()); own.Index() != -1 || set.Configured(own) {
			t.Errorf("%s: a policy on its own has number %d", method, own.Index())
		}
	}
}

func TestModeOfSet(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "mode: OBSERVE\npercent: 25\nmethodConfig: [{name: [{}], mode: OFF, percent: 1}]")
	if set.Mode() != policy.ModeObserve || set.Percent() != 25 {
		t.Errorf("mode %v, %v %%; want that of all calls", set.Mode(), set.Percent())
	}
}
