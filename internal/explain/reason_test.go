// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// TestMeanings has a reason that is new fail for each text and page that lacks it, before other modules' tests do.
func TestMeanings(t *testing.T) {
	t.Parallel()
	runbook := page(t, "docs/runbook.md")
	meanings := map[policy.Reason]explain.Meaning{}
	var order []policy.Reason
	for _, m := range explain.Meanings() {
		meanings[m.Reason] = m
		order = append(order, m.Reason)
	}
	for _, reason := range decision.Reasons() {
		if m := meanings[reason]; m.Short == "" || m.Means == "" {
			t.Errorf("internal/explain/reason.go: %s has no texts: %+v", reason, m)
		}
		if !strings.Contains(runbook, "\n### `"+string(reason)+"`\n") {
			t.Errorf("docs/runbook.md has no %s: run make generate", reason)
		}
	}
	if !slices.Equal(order, decision.Reasons()) {
		t.Errorf("internal/explain/reason.go has %q; want the order %q", order, decision.Reasons())
	}
}

func page(t *testing.T, path string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile("../../" + path))(t))
}
