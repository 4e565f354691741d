// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/sim"
)

func TestPlayable(t *testing.T) {
	t.Parallel()
	if err := playable(pulse()); err != nil {
		t.Errorf("%v; want the pulse to be playable", err)
	}
	for name, change := range map[string]func(*sim.Scenario){
		"two kinds":    func(s *sim.Scenario) { s.Fleets[0].Calls = append(s.Fleets[0].Calls, s.Fleets[0].Calls[0]) },
		"newest first": func(s *sim.Scenario) { s.Services[0].Order = sim.OrderLIFO },
		"costly calls": func(s *sim.Scenario) { s.Fleets[0].Calls[0].Work = 2 },
		"costly hop":   func(s *sim.Scenario) { s.Services[0].Calls = []sim.Call{{Service: "x", Work: 2}} },
		"loss":         func(s *sim.Scenario) { s.Fleets[0].Calls[0].Loss = 0.1 },
		"a cache":      func(s *sim.Scenario) { s.Services[0].Cache = &sim.Cache{Entries: 1, TTL: ms} },
		"new ones":     func(s *sim.Scenario) { s.Fleets[0].Lifetime = time.Second },
		"thrashing":    func(s *sim.Scenario) { s.Services[0].Thrash = 2 },
		"of a method":  func(s *sim.Scenario) { s.Phases[0].Faults = []sim.Fault{{Service: "shop", Method: method, Hang: true}} },
		"slower":       func(s *sim.Scenario) { s.Phases[0].Faults = []sim.Fault{{Service: "shop", Slower: 2}} },
		"flaky relay":  flakyRelay,
	} {
		s := pulse()
		change(s)
		if err := playable(s); err == nil || !strings.Contains(err.Error(), "only the simulator can run that") {
			t.Errorf("%s: %v; want an error", name, err)
		}
	}
}

func flakyRelay(s *sim.Scenario) {
	s.Services[0].Calls = []sim.Call{{Service: "x"}}
	s.Phases[0].Faults = []sim.Fault{{Service: "shop", Flaky: 0.1, Code: codes.Unavailable}}
}

func TestFaultWithPushback(t *testing.T) {
	t.Parallel()
	s := pulse()
	s.Phases = []sim.Phase{{Length: time.Second, Faults: []sim.Fault{{Service: "shop", Down: true, Code: codes.Unavailable, Pushback: new(70 * ms)}}}}
	if r := play(t, s, plain()); r.Calls[0].OK || r.Requests[0][0].Code != codes.Unavailable {
		t.Errorf("%+v; want UNAVAILABLE", r)
	}
}

// Half of the workers serve half the load, in a chain too, and all are back in the next phase.
func TestFaultWithFewerWorkers(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*sim.Scenario{"one service": pulse(), "a chain": chain()} {
		last := s.Services[len(s.Services)-1]
		first := s.Services[0].Name
		s.Phases = []sim.Phase{
			{Length: 25 * ms, Faults: []sim.Fault{{Service: first, Workers: new(1)}}},
			{Length: time.Second},
		}
		synctest.Test(t, func(t *testing.T) {
			o := Outage{Scenario: s, Calls: make([]Call, 20), Clients: []Client{plain()}}
			for i := range o.Calls {
				o.Calls[i].Method = method
			}
			records, err := o.Play(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends := map[time.Duration]int{}
			for _, c := range records[0].Calls {
				ends[c.Took-time.Duration(len(s.Services)-1)*last.Time.Mean()]++
			}
			// One worker of each backend until the first has ended, and another request has begun; then all five.
			if want := map[time.Duration]int{20 * ms: 4, 40 * ms: 4, 45 * ms: 12}; !maps.Equal(ends, want) {
				t.Errorf("%s: the calls end at %v; want %v", name, ends, want)
			}
		})
	}
}
