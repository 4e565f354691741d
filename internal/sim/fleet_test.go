// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// Lost messages are never answered.
func TestLinkLoss(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers = 1000
	s.Fleets[0].Rate, s.Fleets[0].Calls[0].Loss = 1000, 0.1
	s.Fleets[0].Calls[0].Delay = &Distribution{A: 5 * time.Millisecond}
	f := play(t, s, Options{}).Runs[0].Fleets[0]
	if want := 0.9 * 0.9; math.Abs(f.Success-want) > 0.015 {
		t.Errorf("success %.3f; want %.3f: request and answer both arrive", f.Success, want)
	}
	if f.P50 < 110*time.Millisecond || f.P50 > 112*time.Millisecond || f.P99 != time.Minute {
		t.Errorf("p50 %v, p99 %v; want 110 ms, there and back, and the deadline", f.P50, f.P99)
	}
}

// Each process has its lifetime. A new one has a full budget, and connects.
func TestLifetime(t *testing.T) {
	t.Parallel()
	s := small()
	s.Policies = map[string]*Policy{"retries": {Set: methods.Describe(testkit.Must(policy.Parse("retries.yaml", []byte(`
methodConfig:
  - name: [{service: shop.v1.Shop, method: Get}]
    retryPolicy:
      {maxAttempts: 2, initialBackoff: 0.001s, maxBackoff: 0.001s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}
`)))(t))}}
	s.Fleets[0].Clients, s.Fleets[0].Rate, s.Fleets[0].Calls[0].Policy = 2, 60, "retries"
	s.Fleets[0].Calls[0].Method = "/shop.v1.Shop/Get"
	s.Phases[0].Faults = []Fault{{Service: "shop", Down: true, Code: codes.Unavailable}}
	// A process sends two retries before five attempts have failed in a row. When it ends, its waiting calls spend the other two as probes.
	for lifetime, want := range map[time.Duration]int{0: 2 * 2, 20 * time.Second: 2 * 2, 5 * time.Second: 5 * 4, time.Second: 21 * 4} {
		s.Fleets[0].Lifetime = lifetime
		if extra := play(t, s, Options{}).Runs[0].Fleets[0].Extra; extra != want {
			t.Errorf("lifetime %v: %d retries; want %d", lifetime, extra, want)
		}
	}

	s = small()
	s.Services[0].Connect, s.Services[0].Workers, s.Services[0].Queue = 3, 100, 1000
	s.Fleets[0].Rate, s.Fleets[0].Lifetime = 100, time.Second
	served := play(t, s, Options{}).Runs[0].Fleets[0]
	if want := 100 * ms * time.Duration(served.Calls+3*10) / time.Duration(served.Calls); served.Mean != want {
		t.Errorf("%d calls took %v on average; want %v, with ten connections", served.Calls, served.Mean, want)
	}
}
