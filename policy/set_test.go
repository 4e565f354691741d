// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
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
		if p := set.Lookup(method); p == nil || p.Name() != want {
			t.Errorf("Lookup(%q) = %v; want the policy of %s", method, p, want)
		}
	}
	get := set.Lookup("/a.B/Get")
	if s := get.Spec(); s.Timeout != 0 || s.Retry != nil {
		t.Errorf("the entry for the method takes %+v from another one", s)
	}
}

func TestLookupWithoutDefault(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "methodConfig: [{name: [{service: a.B}]}]")
	for _, method := range []string{"/a.C/Get", "/a.B", "/", ""} {
		if p := set.Lookup(method); p != nil {
			t.Errorf("Lookup(%q) = %v; want nil", method, p.Name())
		}
	}
	if p := mustParse(t, "f", "{}").Lookup("/a.B/C"); p != nil {
		t.Errorf("the empty file has a policy for %v", p.Name())
	}
}

func TestPoliciesOrder(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range mustParse(t, "f", lookups).Policies() {
		got = append(got, p.Name())
	}
	if want := []string{"/", "/a.B/", "/a.C/", "/a.B/Get"}; !slices.Equal(got, want) {
		t.Errorf("Policies are for %v; want %v", got, want)
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()
	none := func(*policy.Spec) {}
	t.Run("without a change", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob("testdata/good/*")
		if err != nil || len(files) == 0 {
			t.Fatal("no files", err)
		}
		for _, file := range files {
			set := must.Get(policy.Load(file))(t)
			for _, p := range set.Policies() {
				d := must.Get(p.Derive(none))(t)
				got, want := d.Spec(), p.Spec()
				got.Mode, got.Percent = want.Mode, want.Percent // which the entry alone says in the one
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s:\n%+v\nwant %+v", file, p.Name(), got, want)
				}
			}
		}
	})
	t.Run("mode", func(t *testing.T) {
		t.Parallel()
		d, err := mustParse(t, "f", `{"mode": "OFF", "percent": 5, "methodConfig": [{"name": [{}], "mode": "OBSERVE", "percent": 50}]}`).Lookup("/a.B/C").Derive(none)
		if err != nil || d.Spec().Mode != policy.ModeObserve || *d.Spec().Percent != 50 {
			t.Errorf("%+v, %v; want what the entry says", d.Spec(), err)
		}
	})
	p := mustParse(t, "f", `
idempotency: ASSUME
methodConfig:
- name: [{}]
  retryPolicy:
    {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14],
    perCode: [{codes: [14], maxAttempts: 3}]}
`).Lookup("/a.B/C")
	t.Run("with a change", func(t *testing.T) {
		t.Parallel()
		d, err := p.Derive(func(s *policy.Spec) {
			s.Timeout, s.Retry.MaxAttempts, s.Retry.PerCode[0].MaxAttempts = time.Second, 2, 2
		})
		if err != nil || d.Spec().Retry.MaxAttempts != 2 || d.Spec().Timeout != time.Second || d.Spec().Idempotency != policy.IdempotencyAssume {
			t.Errorf("%+v, %v", d, err)
		}
		if p.Spec().Retry.MaxAttempts != 4 || p.Spec().Timeout != 0 || p.Spec().Retry.PerCode[0].MaxAttempts != 3 {
			t.Errorf("the first policy has changed: %+v", p.Spec())
		}
	})
	t.Run("with a mistake", func(t *testing.T) {
		t.Parallel()
		_, err := p.Derive(func(s *policy.Spec) { s.Retry.MaxAttempts = 1 })
		if _, ok := errors.AsType[*policy.Error](err); !ok {
			t.Errorf("%v; want a *policy.Error", err)
		}
	})
}

func TestSetSourceAndHash(t *testing.T) {
	t.Parallel()
	const text = "maxWaiting: 7"
	set := mustParse(t, "etc/retry.yaml", text)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]; set.Source() != "etc/retry.yaml" || set.Hash() != want {
		t.Errorf("%q %q; want etc/retry.yaml %q", set.Source(), set.Hash(), want)
	}
	made, err := policy.NewSet(policy.Config{})
	if err != nil || made.Source() != "" || made.Hash() != "" {
		t.Errorf("made from Go values: %q %q, %v", made.Source(), made.Hash(), err)
	}
}
