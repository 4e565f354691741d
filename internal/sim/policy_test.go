// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"
)

// A variant changes keys of all entries, and nothing else.
func TestPolicyChanged(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy(`
budgets: [{name: big, ratio: {percent: 50, minPerSecond: 3}}]
methodConfig:
- name: [{service: a.B, method: C}]
  timeout: 2s
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: big}
- name: [{service: a.B, method: D}]
  timeout: 2s
`)
	if err != nil {
		t.Fatal(err)
	}
	set, err := p.changed(`{"admission": "REFUSE", "timeout": null, "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.2s", "maxBackoff": "1s", "backoffMultiplier": 1.5, "retryableStatusCodes": ["ABORTED"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	c, d := set.Lookup("/a.B/C").Spec(), set.Lookup("/a.B/D").Spec()
	if c.Retry.MaxAttempts != 2 || c.Retry.Budget != "big" || c.Timeout != 0 || d.Timeout != 0 || d.Retry.MaxAttempts != 2 || d.Retry.Backoff.Multiplier != 1.5 {
		t.Errorf("changed to %+v and %+v", c, d)
	}
	if !set.Lookup("/a.B/C").Refuses() || len(set.Config().Budgets) != 1 || set.Config().Budgets[0].Name != "big" {
		t.Errorf("admission is %v, budgets %v", set.Lookup("/a.B/C").Refuses(), set.Config().Budgets)
	}
	if before := p.Lookup("/a.B/C").Spec(); before.Retry.MaxAttempts != 3 || before.Timeout != 2*time.Second {
		t.Errorf("the policy itself has changed: %+v", before)
	}
	for set, want := range map[string]string{
		`[]`:                            "sim: set of a variant: \"[]\": must be a JSON object",
		`{"retryPolicy": {"budget":7}}`: "methodConfig[0].retryPolicy.budget: 7: must be a text",
	} {
		if _, err := p.changed(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %s", set, err, want)
		}
	}
}
