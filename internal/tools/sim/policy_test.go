// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// A variant's set changes keys of all entries, and nothing else.
func TestPolicyChanged(t *testing.T) {
	t.Parallel()
	p := must.Get(NewPolicy(`
budgets: [{name: big, ratio: {percent: 50, minPerSecond: 3}}]
methodConfig:
- name: [{service: a.B, method: C}]
  timeout: 2s
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: big}
- name: [{service: a.B, method: D}]
  timeout: 2s
`))(t)
	set := must.Get(p.changed(`{"admission": "REFUSE", "timeout": null, "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.2s", "maxBackoff": "1s", "backoffMultiplier": 1.5, "retryableStatusCodes": ["ABORTED"]}}`))(t)
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
		`{"retryPolicy": {"budget":7}}`: "methodConfig[0].retryPolicy.budget: 7: must be a string",
	} {
		if _, err := p.changed(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %s", set, err, want)
		}
	}
}

// Your own policy is played in addition to the others.
func TestWith(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse("own.yaml", []byte(`methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}}]`)))(t)
	s := example(t, "chain")
	if _, err := s.With("own.yaml", set, ""); err == nil || err.Error() != "own.yaml: has no entry for the method /acme.shop.v1.Shop/Get of the scenario's calls; name one that it has" {
		t.Errorf("error %v", err)
	}
	more := must.Get(s.With("own.yaml", set, "/a.B/C"))(t)
	r := play(t, more, Options{})
	if len(s.Variants) != 3 || len(r.Runs) != 4 || r.Runs[3].Name != "own.yaml" {
		t.Fatalf("%d variants, then %d; the last is %q", len(s.Variants), len(r.Runs), r.Runs[3].Name)
	}
	if got := r.Runs[3].Services[2].PerCall; got < 1.98 || got > 2.02 {
		t.Errorf("%.2f requests for each call at the end of the chain; want two attempts of one layer", got)
	}
}

// Calls that learn nothing also add attempts to a queue.
func TestBlind(t *testing.T) {
	t.Parallel()
	s := crowded(t, Phase{Name: "pulse", Length: 3 * time.Second, Load: 1.5})
	s.Variants = []Variant{{Name: "learns"}, {Name: "blind", Blind: true}}
	r := play(t, s, Options{})
	learns, blind := r.Runs[0].Services[0].PerCall, r.Runs[1].Services[0].PerCall
	if learns > 1.01 || blind < 1.03 {
		t.Errorf("%.3f requests a call, blind %.3f; want attempts after timeouts of the blind alone", learns, blind)
	}
}
