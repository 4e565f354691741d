// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms     = time.Millisecond
	method = "/acme.shop.v1.Shop/Get"
)

// pulse is a scenario that is easy to reckon with: a second of each kind, and a capacity of 1000 requests a second.
func pulse() *sim.Scenario {
	return &sim.Scenario{
		Title: "pulse", Bucket: 200 * ms, Recovery: sim.Recovery{Success: 0.99, Window: 250 * ms},
		Services: []sim.Service{service1("shop")},
		Fleets:   []sim.Fleet{{Name: "users", Clients: 1, Rate: 1000, Calls: []sim.Call{{Service: "shop", Method: method, Deadline: time.Second}}}},
		Phases: []sim.Phase{
			{Name: "calm", Kind: sim.KindLead, Length: time.Second, Load: 0.5},
			{Name: "pulse", Length: time.Second, Load: 1.5},
			{Name: "after", Kind: sim.KindAfter, Length: time.Second, Load: 0.5},
		},
	}
}

func service1(name string, calls ...sim.Call) sim.Service {
	return sim.Service{
		Name: name, Backends: 4, Workers: 5, Queue: 375, Time: &sim.Distribution{A: 20 * ms},
		Refuse: codes.ResourceExhausted, Calls: calls,
	}
}

// chain is three services that call each other, of which the last has a fault.
func chain(fault ...sim.Fault) *sim.Scenario {
	s := pulse()
	s.Services = []sim.Service{
		service1("front", sim.Call{Service: "orders", Method: method}),
		service1("orders", sim.Call{Service: "shop", Method: method}),
		service1("shop"),
	}
	s.Fleets[0].Calls[0].Service = "front"
	s.Phases = []sim.Phase{{Name: "trouble", Length: time.Second, Load: 1, Faults: fault}}
	return s
}

// plain makes one attempt a call.
func plain() Client {
	return Client{Name: "no retries", Options: func() (Options, error) {
		return Options{Dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
	}}
}
