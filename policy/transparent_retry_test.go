// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/stagger-go/stagger/policy"
)

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
