// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

func TestDiagnosticInJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]policy.Diagnostic{{Severity: document.SeverityNote, File: "f", Line: 1, Column: 2, Field: "a", Value: "b", Message: "c"}, {Severity: document.SeverityError}})
	const want = `[{"severity":"note","file":"f","line":1,"column":2,"field":"a","value":"b","message":"c"},{"severity":"error","file":"","message":""}]`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}

// What a policy's keys mean for its attempts: whether another one may follow one that takes long, and next to it.
func TestPolicy_SlowAttempts(t *testing.T) {
	t.Parallel()
	const retry = "retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]"
	for keys, want := range map[string]struct{ watched, parallel bool }{
		"timeout: 1s":                      {false, false},
		retry + "}":                        {false, false},
		retry + ", perAttemptTimeout: 1s}": {true, true},
		retry + ", perAttemptTimeout: 1s, onAttemptTimeout: HEDGE}": {true, true},
		retry + ", perAttemptTimeout: 1s, onAttemptTimeout: RETRY}": {true, false},
		"hedgingPolicy: {maxAttempts: 2}":                           {true, true},
	} {
		p := mustParse(t, "f", "methodConfig: [{name: [{service: a.B}], "+keys+"}]").Lookup("/a.B/C")
		if p.Watched() != want.watched || p.Parallel() != want.parallel {
			t.Errorf("%s: watched %v, parallel %v; want %v", keys, p.Watched(), p.Parallel(), want)
		}
	}
}

// Admission stands where an entry asks for it.
func TestPolicy_Admission(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "methodConfig:\n- {name: [{service: a.B}], admission: NONE}\n- {name: [{service: a.C}], admission: REFUSE}\n- {name: [{service: a.D}]}")
	for method, want := range map[string]bool{"/a.B/M": false, "/a.C/M": true, "/a.D/M": false} {
		if got := set.Lookup(method).Admission(); got != want {
			t.Errorf("%s: %v; want %v", method, got, want)
		}
	}
	if got := fmt.Sprint(compiled.OfSet(set).AdmissionAt); got != "[f:3:39: methodConfig[1].admission: REFUSE: ]" {
		t.Errorf("it is asked for at %s", got)
	}
}
