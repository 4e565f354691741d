// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
)

func TestLint_Refused(t *testing.T) {
	t.Parallel()
	const noEffect = "has no effect: it is for methods that are not declared idempotent, and the entry declares its methods idempotent; " +
		`if they are not, add "idempotency: NONE" to it`
	wantLinted(t, `methodConfig: [{name: [{service: a.B, method: C}], refusedRetry: DENY}]`,
		"warning f:1:66: methodConfig[0].refusedRetry: DENY: "+noEffect)
	wantLinted(t, `methodConfig: [{name: [{service: a.B, method: C}], refusedRetry: DENY, idempotency: NONE}]`)
	const retry = `
  retryPolicy:
    maxAttempts: 2
    initialBackoff: 1s
    maxBackoff: 1s
    backoffMultiplier: 1
    retryableStatusCodes: [8]
    perCode: [{codes: [8], errorInfo: {domain: acme.com, reason: FULL}, processed: NO}]
`
	wantLinted(t, "methodConfig:\n- name: [{service: a.B, method: C}]"+retry,
		"warning f:9:84: methodConfig[0].retryPolicy.perCode[0].processed: NO: "+noEffect)
	wantLinted(t, "idempotency: DECLARED\nmethodConfig:\n- name: [{service: a.B, method: C}]"+retry,
		"warning f:10:84: methodConfig[0].retryPolicy.perCode[0].processed: NO: calls run twice if a handler that has done work returns this status, "+
			"as one does that passes on the error of a service it calls (docs/idempotency.md); FULL of acme.com must come only from what refuses calls before their handlers")
}

func TestServiceConfig_Refused(t *testing.T) {
	t.Parallel()
	_, notes := mustParse(t, "f", "refusedRetry: DENY\nmethodConfig: [{name: [{}], sendCriticality: true, criticality: CRITICAL}]").ServiceConfig(false)
	if len(notes) != 1 || notes[0].String() != "methodConfig[0].sendCriticality: true: gRPC sends no criticality" {
		t.Errorf("notes: %v; want one: gRPC retries no refused call of its own", notes)
	}
}

func TestLintTransparentRetry(t *testing.T) {
	t.Parallel()
	const says = ": DENY: has no effect: it is for methods that are not declared idempotent, and the entry declares its methods idempotent; " +
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
	const says = ": DENY: gRPC itself retries a call once if its stream is refused"
	if len(notes) != 2 || notes[0].String() != "transparentRetry"+says || notes[1].String() != "methodConfig[0].transparentRetry"+says {
		t.Errorf("notes: %v", notes)
	}
}
