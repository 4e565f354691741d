// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const lookups = `
methodConfig:
- name: [{}]
  timeout: 1s
- name: [{service: a.B}, {service: a.C}]
  timeout: 2s
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
- name: [{service: a.B, method: Get}]
  waitForReady: true
`

// TestLookup checks gRFC A2's order, and its trap: an entry for a method that sets nothing disables the settings of the
// service's entry.
func TestLookup(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", lookups)
	for method, want := range map[string]string{
		"/a.B/Get":   "/a.B/Get",
		"/a.B/List":  "/a.B/",
		"/a.C/Get":   "/a.C/",
		"/a.D/Get":   "/",
		"/a.B/Get/x": "/",
		"/a.B":       "/",
		"a.B/Get":    "/",
		"":           "/",
		"Get":        "/",
	} {
		if p := set.Lookup(method); p == nil || p != set.Lookup(want) {
			t.Errorf("Lookup(%q) = %v; want the policy of %s", method, p, want)
		}
	}
	get := set.Lookup("/a.B/Get")
	if s := compiled.Of(get); s.Timeout != 0 || s.Retry != nil {
		t.Errorf("the entry for the method takes %+v from another one", s)
	}
}

// A changed spec of a set's policy is one of its own, without the mode of the set, which applies to all calls when they are made.
func TestSpecOfAnotherPolicy(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/good/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		for _, p := range methods.Describe(testkit.Must(policy.Load(file))(t)).Policies() {
			if same := testkit.Must(compiled.NewPolicy(compiled.Of(p).Policy))(t); !reflect.DeepEqual(compiled.Of(same).Policy, compiled.Of(p).Policy) {
				t.Errorf("%s, %s:\n%+v\nwant %+v", file, p.Name(), compiled.Of(same).Policy, compiled.Of(p).Policy)
			}
		}
	}
	p := mustParse(t, "f", `{"mode": "OFF", "methodConfig": [{"name": [{}], "mode": "OBSERVE"}]}`).Lookup("/a.B/C")
	if s := compiled.Of(p); s.Mode != "OBSERVE" {
		t.Errorf("%+v; want what the entry says", s)
	}
}

func TestSetSourceAndHash(t *testing.T) {
	t.Parallel()
	const text = "maxWaiting: 7"
	set := mustParse(t, "etc/retry.yaml", text)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]; set.Source() != "etc/retry.yaml" || set.Hash() != want {
		t.Errorf("%q %q; want etc/retry.yaml %q", set.Source(), set.Hash(), want)
	}
	made, err := compiled.NewSet(spec.Config{})
	if err != nil || made.Source() != "" || made.Hash() != "" {
		t.Errorf("made from Go values: %q %q, %v", made.Source(), made.Hash(), err)
	}
}
