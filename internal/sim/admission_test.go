// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// crowded is a service of 1000 requests a second with one phase of trouble, and calls that have a second, by a policy
// without admission and with it.
func crowded(t *testing.T, trouble Phase) *Scenario {
	t.Helper()
	p, err := NewPolicy(`methodConfig: [{name: [{service: a.B, method: C}],
		retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.2s}}]`)
	if err != nil {
		t.Fatal(err)
	}
	return &Scenario{
		Title: "crowded", Seed: 20, Bucket: 200 * time.Millisecond, Recovery: Recovery{Success: 0.99, Window: 250 * time.Millisecond},
		Services: []Service{{Name: "shop", Backends: 4, Workers: 5, Queue: 375, Time: &Distribution{A: 20 * time.Millisecond}, Refuse: codes.ResourceExhausted}},
		Fleets:   []Fleet{{Name: "users", Rate: 1000, Calls: []Call{{Service: "shop", Method: "/a.B/C", Policy: "without", Deadline: time.Second}}}},
		Policies: map[string]*Policy{"without": p},
		Variants: []Variant{{Name: "without"}, {Name: "with", Set: `{"admission": "REFUSE"}`}},
		Phases: []Phase{
			{Name: "calm", Kind: KindLead, Length: 5 * time.Second, Load: 0.55},
			trouble,
			{Name: "after", Kind: KindAfter, Length: 4 * time.Second, Load: 0.55},
		},
	}
}

func refused(r *FleetResult) float64 {
	return float64(r.Reasons[policy.ReasonOverloaded]) / float64(r.Calls)
}

func TestAdmissionInOverload(t *testing.T) {
	t.Parallel()
	for clients, want := range map[int]float64{1: 0.75, 10: 0.75, 100: 0.72} {
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

// A service that is slow without a queue looks like one with a queue, unless it says how busy it is.
func TestAdmissionOfSlowService(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		by          time.Duration
		reports     bool
		least, most float64 // calls that are refused
	}{
		{500 * time.Millisecond, false, 0, 0.0005},
		{700 * time.Millisecond, false, 0.05, 0.3},
		{700 * time.Millisecond, true, 0, 0.04},
	} {
		s := crowded(t, Phase{Name: "slow", Length: 10 * time.Second, Load: 0.55, Faults: []Fault{
			{Service: "shop", Slow: &Slow{Part: 1, By: &Distribution{A: row.by}}},
		}})
		s.Services[0].Reports = row.reports
		r := play(t, s, Options{Clients: 100})
		if got := refused(&r.Runs[1].Fleets[0]); got < row.least || got > row.most {
			t.Errorf("%v slower, reports %v: %.4f of the calls are refused; want %v to %v", row.by, row.reports, got, row.least, row.most)
		}
		if got := refused(&r.Runs[0].Fleets[0]); got != 0 {
			t.Errorf("%v slower: %.4f of the calls are refused without admission", row.by, got)
		}
	}
}
