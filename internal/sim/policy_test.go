// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// Your own policy is played in addition to the others.
func TestWith(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Parse("own.yaml", []byte(`methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}}]`)))(t)
	s := example(t, "chain")
	if _, err := s.With("own.yaml", set, ""); err == nil || err.Error() != "own.yaml: has no entry for the method /acme.shop.v1.Shop/Get of the scenario's calls; name one that it has" {
		t.Errorf("error %v", err)
	}
	more := testkit.Must(s.With("own.yaml", set, "/a.B/C"))(t)
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
	if learns > 1.01 || blind < 1.02 {
		t.Errorf("%.3f requests a call, blind %.3f; want attempts after timeouts of the blind alone", learns, blind)
	}
}
