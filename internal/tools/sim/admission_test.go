// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// crowded returns a scenario with a service of 1000 requests a second, one phase of trouble and calls with a deadline of one
// second, by a policy without admission and one with it.
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

func TestAdmissionInOverload(t *testing.T) {
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

// If a service becomes slower but still answers in time, admission refuses no calls, whatever its usual time is. It doesn't
// refuse extra attempts either: if one fails, all of them fail for the same reason.
func TestAdmissionOfSlowService(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		usual, by time.Duration
		workers   int
	}{
		{20 * time.Millisecond, 500 * time.Millisecond, 5},
		{20 * time.Millisecond, 700 * time.Millisecond, 5},
		{200 * time.Millisecond, 500 * time.Millisecond, 75},
		{200 * time.Millisecond, 700 * time.Millisecond, 75},
	} {
		for _, clients := range []int{1, 10, 100} {
			s := crowded(t, Phase{Name: "slow", Length: 10 * time.Second, Load: 0.55, Faults: []Fault{
				{Service: "shop", Slow: &Slow{Part: 1, By: &Distribution{A: row.by}}, Flaky: 0.1, Code: codes.Unavailable},
			}})
			s.Services[0].Time.A, s.Services[0].Workers = row.usual, row.workers
			f := play(t, s, Options{Clients: clients}).Runs[1].Fleets[0]
			if n := f.Reasons[policy.ReasonOverloaded]; n > f.Calls/1000 || f.Calls < 5000 {
				t.Errorf("%v, %v slower, %d clients: %d of %d calls have ended as overloaded; want 1 in 1,000 at most", row.usual, row.by, clients, n, f.Calls)
			}
		}
	}
}

// Half of the servers go for good: admission serves what the others can, for as long as that lasts.
func TestAdmissionWhenCapacityIsHalvedForEver(t *testing.T) {
	t.Parallel()
	workers := 5
	s := crowded(t, Phase{Name: "half", Length: time.Minute, Load: 1.5, Faults: []Fault{{Service: "shop", Workers: &workers}}})
	s.Services[0].Workers *= 2
	s.Services[0].Queue *= 2
	for clients, want := range map[int]float64{1: 0.64, 10: 0.64, 100: 0.63} {
		r := play(t, s, Options{Clients: clients})
		without, with := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0]
		if with.Success < want || without.Success > 0.3 {
			t.Errorf("%d clients: %.3f of the calls succeed with admission, %.3f without; want %v and less than 0.3", clients, with.Success, without.Success, want)
		}
	}
}
