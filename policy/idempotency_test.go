// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
)

// TestIdempotencyOrder is the order in docs/idempotency.md.
func TestIdempotencyOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		file, entry string
		method      string // of a name with method
		service     string // of a name without a method
	}{
		{"", "", "ASSUME", "DECLARED"},
		{"ASSUME", "", "ASSUME", "ASSUME"},
		{"DECLARED", "", "DECLARED", "DECLARED"},
		{"NONE", "", "NONE", "NONE"},
		{"", "ASSUME", "ASSUME", "ASSUME"},
		{"NONE", "ASSUME", "ASSUME", "ASSUME"},
		{"ASSUME", "declared", "DECLARED", "DECLARED"},
		{"ASSUME", "NONE", "NONE", "NONE"},
	} {
		text := "methodConfig:\n- name: [{}, {service: a.B}, {service: a.B, method: C}]\n"
		if row.entry != "" {
			text += "  idempotency: " + row.entry + "\n"
		}
		if row.file != "" {
			text += "idempotency: " + row.file + "\n"
		}
		set := mustParse(t, "f", text)
		for method, want := range map[string]string{
			"/a.B/C": row.method, "/a.B/D": row.service, "/a.C/D": row.service,
		} {
			if got := set.Lookup(method).Idempotency(); got != want {
				t.Errorf("file %q, entry %q: %s is %v; want %v", row.file, row.entry, method, got, want)
			}
		}
	}
}

func TestIdempotencyKey_Header(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"{}": "idempotency-key", "{header: x-request-id}": "x-request-id"} {
		set := mustParse(t, "f", "methodConfig: [{name: [{service: a.B}], idempotencyKey: "+key+"}]")
		if got := set.Lookup("/a.B/C").IdempotencyKey(); got != want {
			t.Errorf("idempotencyKey: %s: the header is %q; want %q", key, got, want)
		}
	}
}
