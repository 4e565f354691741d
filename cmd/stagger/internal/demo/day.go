// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// day is what happens to every client alike. The name of a phase is what the tables call it, a colon, and what
// happens; a phase without a colon is not in the tables.
type day struct{ *sim.Scenario }

const (
	workers     = 5 // of each backend
	callTimeout = time.Second
)

// newDay is the scripted day, at 200 requests per second of capacity for each worker of a backend.
// The queue of a backend holds 1.5 s of work, more than any call waits there.
func newDay(workers int) day {
	const calm, normal = "calm", 0.55
	service := sim.Service{
		Name: "orders", Backends: 4, Workers: workers, Queue: 75 * workers, Time: &sim.Distribution{A: 20 * time.Millisecond}, Refuse: codes.ResourceExhausted,
	}
	down := func(backends ...int) []sim.Fault {
		return []sim.Fault{{Service: service.Name, Backends: backends, Down: true, Code: codes.Unavailable}}
	}
	return day{&sim.Scenario{
		Title:    "the day",
		Bucket:   200 * time.Millisecond,
		Recovery: sim.Recovery{Success: 0.99, Window: 250 * time.Millisecond},
		Services: []sim.Service{service},
		Fleets: []sim.Fleet{{
			Name: "users", Clients: 1, Rate: service.Capacity(),
			Calls: []sim.Call{{Service: service.Name, Method: orders.GetOrder, Deadline: callTimeout}},
		}},
		Phases: []sim.Phase{
			{Name: calm, Length: 3 * time.Second, Load: normal},
			{Name: "blip: every backend fails", Length: 150 * time.Millisecond, Load: normal, Faults: down()},
			{Name: calm, Length: 1250 * time.Millisecond, Load: normal},
			{Name: "one of four: one backend fails", Length: 3 * time.Second, Load: normal, Faults: down(0)},
			{Name: calm, Length: 600 * time.Millisecond, Load: normal},
			{Name: "outage: every backend fails", Length: 4 * time.Second, Load: normal, Faults: down()},
			{Name: calm, Length: time.Second, Load: normal},
			{Name: "pulse: 1.5 times the capacity", Length: 2500 * time.Millisecond, Load: 1.5},
			{Name: "after the pulse: normal load again", Kind: sim.KindAfter, Length: 2500 * time.Millisecond, Load: normal},
		},
	}}
}

// span is when a phase that is in the tables begins and ends, from the day's start.
func (d day) span(label string) (from, to time.Duration) {
	for _, p := range d.Phases {
		to = from + p.Length
		if strings.HasPrefix(p.Name, label+":") {
			return from, to
		}
		from = to
	}
	return 0, 0
}

// labels are the phases that are in the tables.
func (d day) labels() []string {
	var list []string
	for _, p := range d.Phases {
		if label, _, ok := strings.Cut(p.Name, ":"); ok {
			list = append(list, label)
		}
	}
	return list
}

// orderShare is the part of the calls that creates an order, which nobody has declared safe.
const orderShare = 0.02

// calls draws the calls of the day. The same seed gives the same calls.
func (d day) calls(seed uint64) []outage.Call {
	list := outage.Arrivals(d.Scenario, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range list {
		if random.Float64() < orderShare {
			list[i].Method = orders.CreateOrder
		}
	}
	return list
}
