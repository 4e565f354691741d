// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stagger-go/stagger/internal/document"
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
