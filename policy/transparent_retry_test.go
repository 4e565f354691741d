// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

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
			set := mustParse(t, "f", row.file)
			if got := set.DeniesTransparentRetry(set.Lookup(row.method), row.method); got != row.want {
				t.Errorf("%v; want %v", got, row.want)
			}
		})
	}
}

// A policy of no set does what the file says, unless it says something itself.
func TestDeniesTransparentRetryOfOtherPolicies(t *testing.T) {
	t.Parallel()
	deny, none := mustParse(t, "f", "transparentRetry: DENY"), mustParse(t, "f", "{}")
	for name, row := range map[string]struct {
		set  *policy.Set
		said policy.Permission
		want bool
	}{
		"the file":        {deny, 0, true},
		"nobody":          {none, 0, false},
		"the policy":      {none, policy.Deny, true},
		"the policy wins": {deny, policy.Allow, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.New(policy.Spec{TransparentRetry: row.said})
			if err != nil {
				t.Fatal(err)
			}
			if got := row.set.DeniesTransparentRetry(p, "/shop.Mixed/Pay"); got != row.want {
				t.Errorf("%v; want %v", got, row.want)
			}
			if row.set.DeniesTransparentRetry(p, "/shop.Mixed/Get") {
				t.Error("a method is denied transparent retries that its descriptor declares safe")
			}
			if row.said == 0 && row.set.DeniesTransparentRetry(nil, "/shop.Mixed/Pay") != row.want {
				t.Errorf("without a policy: %v; want %v", !row.want, row.want)
			}
			derived, err := p.Derive(func(*policy.Spec) {})
			if err != nil || derived.Spec().TransparentRetry != row.said {
				t.Errorf("Derive: %v, %v; want %v", derived.Spec().TransparentRetry, err, row.said)
			}
		})
	}
}

func TestTransparentRetryInvalid(t *testing.T) {
	t.Parallel()
	if _, err := policy.New(policy.Spec{TransparentRetry: 9}); err == nil || err.Error() != "transparentRetry: 9: must be ALLOW or DENY" {
		t.Errorf("%v", err)
	}
}

func TestLintTransparentRetry(t *testing.T) {
	t.Parallel()
	const says = ": DENY: has no effect: it is for methods that nobody declares safe to repeat, and the entry declares its methods safe; " +
		`if they are not, add "idempotency: NONE" to it`
	wantLinted(t, `methodConfig: [{name: [{service: a.B, method: C}], transparentRetry: DENY}]`,
		"warning f:1:70: methodConfig[0].transparentRetry"+says)
	wantLinted(t, `methodConfig: [{name: [{service: a.B}], transparentRetry: DENY, idempotencyKey: {}}]`,
		"warning f:1:59: methodConfig[0].transparentRetry"+says)
	wantLinted(t, `methodConfig: [{name: [{service: a.B, method: C}, {service: a.B}], transparentRetry: DENY}]`)
	wantLinted(t, `methodConfig: [{name: [{service: a.B, method: C}], transparentRetry: DENY, idempotency: NONE}]`)
	wantLinted(t, "transparentRetry: DENY\nmethodConfig: [{name: [{service: a.B, method: C}]}]")
}

func TestServiceConfigNotesTransparentRetry(t *testing.T) {
	t.Parallel()
	_, notes := mustParse(t, "f", "transparentRetry: DENY\nmethodConfig: [{name: [{}], transparentRetry: DENY}, {name: [{service: a.B}]}]").ServiceConfig(false)
	const says = ": DENY: gRPC sends a call once more by itself if its stream is refused"
	if len(notes) != 2 || notes[0].String() != "transparentRetry"+says || notes[1].String() != "methodConfig[0].transparentRetry"+says {
		t.Errorf("notes: %v", notes)
	}
}
