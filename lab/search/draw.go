// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// drawn is a randomly drawn scenario.
type drawn struct {
	Scenario *sim.Scenario     // without variants: the players replace
	Files    map[string]string // policy files, by player
	Words    string            // description, in one line
	Warned   []string          // warnings of lint, or of the Retrier within 100 calls, about the default player's policy
	LowLoad  bool              // the load is always below 0.6 of the capacity
}

// lowLoad is the load below which retries must not lose earlier gains.
const lowLoad = 0.6

// draft is a scenario that is being drawn.
type draft struct {
	chance

	sim.Scenario

	base   float64 // load before and after the trouble, in parts of the capacity
	rare   bool    // each client calls once in ten seconds
	kinds  []kind  // of calls, each of which has an entry in policy files
	phases []phase
	words  []string
}

// kind is a kind of calls: those of one method.
type kind struct {
	service, method string
	work            float64
	median, p99     time.Duration // without faults and queues
}

// names of the services of a chain; shorter chains have the last ones.
var names = []string{"front", "cart", "orders", "shop"}

// draw draws the scenario with a number, under a seed.
func draw(ctx context.Context, seed uint64, index int) (*drawn, error) {
	d := &draft{chance: newChance(seed, index)}
	d.Title = fmt.Sprintf("scenario %d of seed %d", index, seed)
	d.Seed = 1
	d.Bucket = time.Second
	d.rare = d.hit(0.08)
	d.drawLoad()
	d.drawServices()
	if err := d.measure(ctx); err != nil {
		return nil, err
	}
	d.drawCalls()
	d.drawTrouble()
	p := d.drawPolicy()
	s := d.Scenario
	s.Policies = map[string]*sim.Policy{}
	r := &drawn{Scenario: &s, Files: map[string]string{}, LowLoad: true}
	for _, phase := range s.Phases {
		r.LowLoad = r.LowLoad && phase.Load < lowLoad
	}
	for _, player := range players {
		if player.file == nil {
			continue
		}
		r.Files[player.name] = player.file(d, p)
		policy, err := sim.NewPolicy(r.Files[player.name])
		if err != nil {
			return nil, fmt.Errorf("policy of %q: %w", player.name, err)
		}
		s.Policies[player.name] = policy
	}
	r.Warned = d.warnings(r.Files[defaultPlayer], p)
	r.Words = strings.Join(d.words, ", ")
	s.About = r.Words
	return r, nil
}

// say adds to the description.
func (d *draft) say(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

// drawServices draws a chain of services, and the number of clients. A play may cost a tenth of a second of processor time,
// so it has thousands of calls; the capacity follows from that.
func (d *draft) drawServices() {
	const mostCalls = 12_000
	hops := 1 + d.one(0.6, 0.2, 0.12, 0.08)
	clients := d.drawClients()
	var calls float64 // at a capacity of one a second
	for _, p := range d.phases {
		calls += p.load * p.length.Seconds()
	}
	capacity := d.log(2000, mostCalls) / float64(hops) / calls
	if d.rare {
		clients = d.count(60, 300)
		capacity = float64(clients) / 10 / d.base
	}
	for i, name := range names[len(names)-hops:] {
		s := sim.Service{Name: name, Guard: true, Refuse: codes.ResourceExhausted}
		last := i == hops-1
		room := d.even(1.3, 3) // spare capacity of the services before
		if last {
			room = 1
		}
		mean := time.Duration(d.log(2, 80) / capacity * float64(time.Second))
		s.Time = d.drawTime(last, min(max(mean, 2*time.Millisecond), time.Second/2))
		slots := max(capacity*room*s.Time.Mean().Seconds(), 1)
		s.Backends = max(min(d.count(1, 20), int(slots)), 1)
		s.Workers = max(int(slots/float64(s.Backends)+0.5), 1)
		if d.hit(0.5) {
			s.Refuse = codes.Unavailable
		}
		if d.hit(0.3) {
			s.Abandoned = sim.AbandonedDrop
		}
		if d.hit(0.15) {
			s.Order = sim.OrderLIFO
		}
		if !last {
			s.Calls = []sim.Call{{Service: names[len(names)-hops+i+1], Method: method(names[len(names)-hops+i+1]), Policy: defaultPlayer}}
		}
		d.Services = append(d.Services, s)
	}
	for _, s := range d.Services {
		d.kinds = append(d.kinds, kind{s.Name, method(s.Name), 1, 0, 0})
	}
	first, last := &d.Services[0], d.last()
	d.Fleets = []sim.Fleet{{
		Name: "users", Clients: clients, Rate: tidy(last.Capacity()),
		Calls: []sim.Call{{Service: first.Name, Method: method(first.Name), Policy: defaultPlayer}},
	}}
	if hops == 1 && d.hit(0.3) {
		d.drawCostly()
	}
	d.say("%d processes", clients)
	if hops > 1 {
		d.say("%d hops", hops)
	}
	d.say("%d backends of %d workers", last.Backends, last.Workers)
}

// drawCostly adds a method of the same servers with more expensive calls.
func (d *draft) drawCostly() {
	f, costly := &d.Fleets[0], *d.call()
	costly.Method = strings.Replace(costly.Method, "Get", "List", 1)
	costly.Share, costly.Work = tidy(d.log(0.03, 0.3)), tidy(d.log(2, 15))
	f.Calls[0].Share = tidy(1 - costly.Share)
	f.Calls = append(f.Calls, costly)
	f.Rate = tidy(f.Rate / (1 + costly.Share*(costly.Work-1)))
	d.kinds = append(d.kinds, kind{costly.Service, costly.Method, costly.Work, 0, 0})
	d.say("%.0f %% of the calls %.2g times the work", 100*costly.Share, costly.Work)
}

func (d *draft) drawClients() int {
	switch d.one(0.2, 0.2, 0.3, 0.3) {
	case 0:
		return 1
	case 1:
		return d.count(2, 10)
	case 2:
		return d.count(10, 100)
	default:
		return d.count(100, 300)
	}
}

// call returns the call of the users.
func (d *draft) call() *sim.Call { return &d.Fleets[0].Calls[0] }

// deadline returns the deadline of a kind of calls: the users' own, or what they leave to calls below.
func (d *draft) deadline(kind int) time.Duration {
	if below := kind - len(d.Services); below >= 0 {
		return d.Fleets[0].Calls[1+below].Deadline
	}
	return d.call().Deadline
}

// last returns the service at the end of the chain, whose capacity is the unit of all loads.
func (d *draft) last() *sim.Service { return &d.Services[len(d.Services)-1] }

// method returns the method of calls to a service.
func method(service string) string { return "/search.v1." + service + "/Get" }

// drawTime draws how long a request takes.
func (d *draft) drawTime(say bool, mean time.Duration) *sim.Distribution {
	t, what := &sim.Distribution{A: neat(mean)}, "fixed times"
	switch d.one(0.1, 0.36, 0.3, 0.09, 0.15) {
	case 1:
		t.Shape, what = sim.ShapeExponential, "exponential times"
	case 2:
		t.Shape, what = sim.ShapeLogNormal, "heavy-tailed times"
		t.B = time.Duration(float64(t.A) * d.log(4, 40))
		t.A = neat(time.Duration(float64(t.A) * float64(t.A) / float64(t.Mean())))
		t.B = neat(time.Duration(float64(t.A) * d.log(4, 40)))
	case 3:
		t.Shape, what = sim.ShapeUniform, "even times"
		t.A, t.B = neat(t.A/2), neat(t.A*3/2)
	case 4:
		t = &sim.Distribution{Shape: sim.ShapeBimodal, Part: tidy(d.log(0.02, 0.25))}
		slow := d.log(3, 20)
		usual := neat(time.Duration(float64(mean) / (1 + t.Part*(slow-1))))
		t.Usual = &sim.Distribution{A: usual}
		t.Slow = &sim.Distribution{A: neat(time.Duration(float64(usual) * slow))}
		if d.hit(0.5) {
			t.Usual.Shape, t.Slow.Shape = sim.ShapeExponential, sim.ShapeExponential
		}
		what = fmt.Sprintf("bimodal times, %.0f %% of them %.2g times slower,", 100*t.Part, slow)
	}
	if say {
		d.say("%s of %v", what, t.Mean().Round(time.Millisecond))
	}
	return t
}

// measure plays calls of each kind without faults, and records how long they take.
func (d *draft) measure(ctx context.Context) error {
	s := sim.Scenario{
		Title: "usual", Seed: 1, Bucket: time.Second, Recovery: sim.Recovery{Success: 1, Window: time.Second},
		Phases: []sim.Phase{{Name: "calm", Length: 10 * time.Second, Load: 1}}, Services: slices.Clone(d.Services),
	}
	for i := range s.Services {
		s.Services[i].Workers = 1000
		s.Services[i].Calls = slices.Clone(s.Services[i].Calls)
		for k := range s.Services[i].Calls {
			s.Services[i].Calls[k].Policy = sim.NoPolicy
		}
	}
	for i, k := range d.kinds {
		call := sim.Call{Service: k.service, Deadline: time.Minute, Work: k.work}
		s.Fleets = append(s.Fleets, sim.Fleet{Name: fmt.Sprint("fleet ", i), Clients: 1, Rate: 50, Calls: []sim.Call{call}})
	}
	r, err := s.Run(ctx, sim.Options{Parallel: 1})
	if err != nil {
		return err
	}
	for i, f := range r.Runs[0].Fleets {
		d.kinds[i].median, d.kinds[i].p99 = f.P50, f.P99
	}
	return nil
}

// drawCalls draws deadlines, networks and queues.
func (d *draft) drawCalls() {
	call, u := d.call(), d.kinds[0]
	deadline := neat(min(max(time.Duration(float64(u.median)*d.log(3, 60)), u.p99, 100*time.Millisecond), 10*time.Second))
	d.say("deadline %v", deadline)
	call.Deadline = deadline
	if d.hit(0.5) {
		call.Delay = &sim.Distribution{A: neat(time.Duration(d.log(float64(time.Millisecond), float64(call.Deadline)/100+1e6)))}
	}
	if d.hit(0.05) {
		call.Loss = 0.002
		d.say("lossy network")
	}
	if d.hit(0.15) {
		call.Connections = d.count(2, 4)
	}
	for i := range d.Fleets[0].Calls[1:] {
		costly := &d.Fleets[0].Calls[1+i]
		costly.Deadline = min(max(deadline, neat(2*d.kinds[len(d.Services)+i].p99)), 10*time.Second)
		costly.Delay, costly.Loss, costly.Connections = call.Delay, call.Loss, call.Connections
	}
	for i := range d.Services {
		s := &d.Services[i]
		perBackend := s.Capacity() / float64(s.Backends)
		long := d.hit(0.65)
		if long {
			s.Queue = max(int(perBackend*call.Deadline.Seconds()*d.log(0.4, 4)), 1)
		} else {
			s.Queue = d.IntN(3*s.Workers + 1)
		}
		if s == d.last() {
			d.say("%s %s queues", map[bool]string{true: "long", false: "short"}[long], map[sim.Order]string{sim.OrderFIFO: "FIFO", sim.OrderLIFO: "LIFO"}[s.Order])
		}
	}
	window := time.Duration(60 / (d.base * d.Fleets[0].Rate) * float64(time.Second)) // of sixty calls
	d.Recovery = sim.Recovery{Success: 0.95, Window: max(window.Round(10*time.Millisecond), 250*time.Millisecond)}
}
