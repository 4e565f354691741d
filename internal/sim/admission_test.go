// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/testkit"
)

// crowded returns a scenario with a service of 1000 requests a second, one phase of trouble and calls with a deadline of one
// second, by a policy without admission and one with it.
func crowded(t *testing.T, trouble Phase) *Scenario {
	t.Helper()
	policies := map[string]*Policy{}
	for name, admission := range map[string]string{"without": "NONE", "with": "REFUSE"} {
		policies[name] = testkit.Must(NewPolicy(`methodConfig: [{name: [{service: a.B, method: C}], admission: ` + admission + `,
			retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.2s}}]`))(t)
	}
	return &Scenario{
		Title: "crowded", Seed: 20, Bucket: 200 * time.Millisecond, Recovery: Recovery{Success: 0.99, Window: 250 * time.Millisecond},
		Services: []Service{{Name: "shop", Backends: 4, Workers: 5, Queue: 375, Time: &Distribution{A: 20 * time.Millisecond}, Refuse: codes.ResourceExhausted}},
		Fleets:   []Fleet{{Name: "users", Rate: 1000, Calls: []Call{{Service: "shop", Method: "/a.B/C", Policy: "without", Deadline: time.Second}}}},
		Policies: policies,
		Variants: []Variant{{Name: "without"}, {Name: "with", All: "with"}},
		Phases: []Phase{
			{Name: "calm", Kind: KindLead, Length: 5 * time.Second, Load: 0.55},
			trouble,
			{Name: "after", Kind: KindAfter, Length: 4 * time.Second, Load: 0.55},
		},
	}
}

func TestAdmissionInOverload(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for clients, want := range map[int]float64{1: 0.75, 10: 0.75, 100: 0.73} {
		r := play(t, crowded(t, Phase{Name: "overload", Length: 10 * time.Second, Load: 1.5}), Options{Clients: clients})
		without, with := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0]
		if with.Success < want || without.Success > 0.3 {
			t.Errorf("%d clients: %.3f of the calls succeed with admission, %.3f without; want %v and less than 0.3", clients, with.Success, without.Success, want)
		}
		if with.Unfinished != 0 {
			t.Errorf("%d clients: %d calls have not ended", clients, with.Unfinished)
		}
	}
}
