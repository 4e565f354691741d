// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// TestIdempotencyOrder is the order in docs/idempotency.md.
func TestIdempotencyOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		file, entry string
		method      policy.Idempotency // of a name with method
		service     policy.Idempotency // of a name without a method
	}{
		{"", "", policy.IdempotencyAssume, policy.IdempotencyDeclared},
		{"ASSUME", "", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"DECLARED", "", policy.IdempotencyDeclared, policy.IdempotencyDeclared},
		{"NONE", "", policy.IdempotencyNone, policy.IdempotencyNone},
		{"", "ASSUME", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"NONE", "ASSUME", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"ASSUME", "declared", policy.IdempotencyDeclared, policy.IdempotencyDeclared},
		{"ASSUME", "NONE", policy.IdempotencyNone, policy.IdempotencyNone},
	} {
		text := "methodConfig:\n- name: [{}, {service: a.B}, {service: a.B, method: C}]\n"
		if row.entry != "" {
			text += "  idempotency: " + row.entry + "\n"
		}
		if row.file != "" {
			text += "idempotency: " + row.file + "\n"
		}
		set := mustParse(t, "f", text)
		for method, want := range map[string]policy.Idempotency{
			"/a.B/C": row.method, "/a.B/D": row.service, "/a.C/D": row.service,
		} {
			if got := set.Lookup(method).Spec().Idempotency; got != want {
				t.Errorf("file %q, entry %q: %s is %v; want %v", row.file, row.entry, method, got, want)
			}
		}
	}
}
