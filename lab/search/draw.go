// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/sim"
)

// object is an object of a scenario file or a policy file.
type object = map[string]any

// scenario is a drawn scenario.
type scenario struct {
	*sim.Scenario // its variants are the players

	*chance // its draws

	file []byte // the same, as a file for stagger simulate
	kind string // one of the rows of its set
}

// draft is a scenario that is being drawn.
type draft struct {
	*chance

	base     float64       // load before and after the trouble, in parts of the capacity
	rare     bool          // each client calls once in ten seconds
	cached   bool          // the last service has a cache
	lifetime time.Duration // of each client; 0: until the end
	clients  int
	rate     float64       // calls a second of all clients, at a load of 1
	trouble  time.Duration // length of each phase of the trouble
	calls    float64       // at a capacity of one a second
	phases   []object
	services []object // each calls the next
	backends int      // of the last service, as below
	workers  int      // of each backend
	capacity float64  // requests a second, the unit of all loads
	mean     float64  // of the time of a request, in nanoseconds
	kinds    []kind   // of calls: one to each service, then other calls of the users
	shape    shape    // of the policies
	row      string   // one of the rows of the set
	words    []string
}

// kind is a kind of calls: those of one method.
type kind struct {
	service, method string
	median, p95     time.Duration // without faults and queues
	p99             time.Duration
	deadline        time.Duration
	file            object
}

// draw draws a scenario for these players.
func draw(ctx context.Context, c *chance, names []string) (*scenario, error) {
	d := &draft{chance: c}
	if c.set.helps() {
		d.drawHealthy()
	} else {
		d.row, d.rare = rowUsual, c.hit("rare calls", 0.08)
		d.drawLoad()
		d.drawServices()
	}
	if err := d.measure(ctx); err != nil {
		return nil, err
	}
	if c.set.helps() {
		d.drawHelpCalls()
		d.drawHelpPolicy()
		d.drawMendable()
	} else {
		d.drawCalls()
		d.drawLimits()
		d.drawTrouble()
		d.drawPolicy()
		d.drawAge()
	}
	policies, variants := d.files(names)
	var calls []object
	for i, k := range d.kinds {
		if i == 0 || i >= len(d.services) {
			calls = append(calls, k.file)
		}
	}
	window := time.Duration(60 / (d.base * d.rate) * float64(time.Second)) // of sixty calls
	s, err := newScenario(object{
		"seed":  playSeed(c.source("plays")),
		"title": fmt.Sprintf("scenario %d of seed %d (%v)", c.index, c.seed, c.set),
		"about": strings.Join(d.words, ", "), "bucket": max(time.Second, d.length()/1000).String(),
		"recovery": object{"success": 0.95, "window": max(window.Round(10*time.Millisecond), 250*time.Millisecond).String()},
		"services": d.services, "phases": d.phases, "policies": policies, "variants": variants,
		"fleets": d.drawFleets(calls),
	})
	if err != nil {
		return nil, err
	}
	s.chance, s.kind = c, d.row
	if row := c.set.row(); row != "" {
		s.kind = row
	}
	return s, nil
}

// length returns the length of all phases.
func (d *draft) length() (sum time.Duration) {
	for _, p := range d.phases {
		length, _ := time.ParseDuration(fmt.Sprint(p["length"])) // as newPhase has written it
		sum += length
	}
	return sum
}

// newScenario returns the scenario that a file describes.
func newScenario(file object) (*scenario, error) {
	text, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return nil, err
	}
	s, err := sim.Parse("drawn.json", text, nil)
	return &scenario{Scenario: s, file: append(text, '\n')}, err
}

// say adds to the description.
func (d *draft) say(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

// drawLoad draws how the load changes: not at all, in a pulse, in steps up and down, or in a train of pulses.
func (d *draft) drawLoad() {
	d.base = d.even("load", 0.3, 0.88)
	shape := d.one("course of the load", 0.42, 0.28, 0.15, 0.15)
	if shape == 0 && d.hit("high load", 0.25) {
		d.base = d.even("high load of", 0.65, 1.25)
	}
	high := max(tidy(d.log("peak", 0.8, 3)), d.base)
	trouble, slow := d.span("length of the trouble", 2*time.Second, 15*time.Second), 1
	if d.hit("long trouble", 0.1) {
		trouble *= 4
	}
	if d.rare {
		trouble, slow = 3*trouble, 4
	}
	add := func(kind string, length time.Duration, load float64) {
		d.phases = append(d.phases, newPhase(kind, length, tidy(load)))
		d.calls += load * length.Seconds()
	}
	add("LEAD", time.Duration(slow)*d.span("length of the lead", 2*time.Second, 6*time.Second), d.base)
	// Of the peak above the base, in turn.
	loads := [][]float64{{0}, {1}, {1. / 3, 2. / 3, 1, 2. / 3, 1. / 3}, {1, 0, 1, 0, 1, 0, 1, 0, 1}}[shape]
	if shape == 3 {
		loads = loads[:3+2*int(4*d.part("pulses"))]
	}
	d.say("load %v", d.base)
	if shape > 0 {
		d.say("%s to %.2g", []string{"", "pulse", "ramp", "pulses"}[shape], high)
	}
	d.trouble = trouble / time.Duration(len(loads))
	for _, part := range loads {
		add("TROUBLE", d.trouble, d.base+(high-d.base)*part)
	}
	add("AFTER", time.Duration(slow)*d.span("length of the end", 4*time.Second, 12*time.Second), d.base)
}

func newPhase(kind string, length time.Duration, load float64, faults ...object) object {
	faults = append([]object{}, faults...)
	return object{"name": kind, "kind": kind, "length": max(neat(length), 10*time.Millisecond).String(), "load": load, "faults": faults}
}

// drawServices draws a chain of services, and the number of clients. A play may cost a tenth of a second of processor time,
// so it has thousands of calls; the capacity follows from that.
func (d *draft) drawServices() {
	names := []string{"front", "cart", "orders", "shop"}
	names = names[3-d.one("hops", 0.6, 0.2, 0.12, 0.08):]
	d.clients = d.count("processes", 1, 300)
	capacity := d.log("calls", 2000, 12_000) / float64(len(names)) / d.calls
	if d.rare {
		d.clients = d.count("processes with rare calls", 60, 300)
		capacity = float64(d.clients) / 10 / d.base
	}
	for i, name := range names {
		room := d.even("spare capacity", 1.3, 3)
		if i+1 == len(names) {
			room = 1
		}
		d.mean = float64(neat(min(d.log("work", 2, 80)/capacity, 0.5) * 1e9))
		slots := max(capacity*room*d.mean/1e9, 1)
		d.backends = min(d.count("backends", 1, 20), int(slots))
		d.workers = max(int(slots/float64(d.backends)+0.5), 1)
		d.capacity = float64(d.backends*d.workers) / d.mean * 1e9
		file := object{
			"name": name, "backends": d.backends, "workers": d.workers,
			"refuse":    []string{"RESOURCE_EXHAUSTED", "UNAVAILABLE"}[d.one("refuse", 0.5, 0.5)],
			"abandoned": []string{"SERVE", "DROP"}[d.one("abandoned", 0.7, 0.3)],
			"order":     []string{"FIFO", "LIFO"}[d.one("order", 0.85, 0.15)],
		}
		if i+1 == len(names) {
			d.drawLoops(file)
		}
		file["time"] = d.drawTime()
		d.addService(file)
	}
	d.rate = tidy(d.capacity)
	d.say("%d processes, %d hops, %d backends of %d workers", d.clients, len(names), d.backends, d.workers)
	if len(names) == 1 && d.hit("costly calls", 0.5) { // a method of the same servers
		share, work := tidy(d.log("part of costly calls", 0.03, 0.3)), tidy(d.log("work of costly calls", 2, 15))
		d.kinds[0].file["share"] = tidy(1 - share)
		d.rate = tidy(d.rate / (1 + share*(work-1)))
		d.addKind("shop", "/List", share, work)
		d.say("%.0f %% of the calls %.2g times the work", 100*share, work)
	}
}

// addService adds a service that the one before calls.
func (d *draft) addService(file object) {
	name, _ := file["name"].(string)
	d.addKind(name, "/Get", 1, 1)
	if last := len(d.services) - 1; last >= 0 {
		d.services[last]["calls"] = []object{{"service": name, "method": d.kinds[last+1].method}}
	}
	d.services = append(d.services, file)
}

func (d *draft) addKind(service, method string, share, work float64) {
	k := kind{service: service, method: "/search.v1." + service + method}
	k.file = object{"service": service, "method": k.method, "share": share, "work": work, "deadline": "1m"}
	d.kinds = append(d.kinds, k)
}

// drawTime draws the distribution of how long a request takes.
func (d *draft) drawTime() any {
	mean := time.Duration(d.mean)
	kind := d.one("times", 0.3, 0.3, 0.15, 0.25)
	d.say("%s times of %v", []string{"exponential", "heavy-tailed", "bimodal", "lognormal"}[kind], mean)
	switch kind {
	case 0:
		return object{"exponential": mean.String()}
	case 1, 3:
		tail := d.log("tail", 4, 40)
		if kind == 3 {
			tail = d.log("spread", 1.6, 10) // σ of 0.2 to 1
		}
		deviation := math.Log(tail) / 2.326 // of the logarithm; 2.326 is the 99 % quantile of the normal distribution
		median := max(d.mean/math.Exp(deviation*deviation/2), 1e6)
		return object{"lognormal": object{"median": neat(median).String(), "p99": neat(median * tail).String()}}
	default:
		part, slow := tidy(d.log("slow part", 0.02, 0.25)), d.log("slower", 3, 20)
		usual := d.mean / (1 + part*(slow-1))
		return object{"bimodal": object{"usual": neat(usual).String(), "slow": neat(usual * slow).String(), "part": part}}
	}
}

// measure plays calls of each kind with free workers and without faults, and records how long they take.
func (d *draft) measure(ctx context.Context) error {
	services, fleets := make([]object, 0, len(d.services)), make([]object, 0, len(d.kinds))
	for _, s := range d.services {
		free := maps.Clone(s)
		free["workers"] = 1000
		services = append(services, free)
	}
	for i, k := range d.kinds {
		fleets = append(fleets, object{"name": fmt.Sprint("fleet ", i), "rate": 50, "calls": k.file})
	}
	phases := []object{{"name": "calm", "length": "10s"}}
	s, err := newScenario(object{"title": "usual", "services": services, "fleets": fleets, "phases": phases})
	if err != nil {
		return err
	}
	r, err := s.Run(ctx, sim.Options{})
	if err != nil {
		return err
	}
	for i, f := range r.Runs[0].Fleets {
		d.kinds[i].median, d.kinds[i].p95, d.kinds[i].p99 = f.P50, f.P95, f.P99
	}
	return nil
}

// drawCalls draws deadlines, networks and queues.
func (d *draft) drawCalls() {
	const longest = 10 * time.Second
	deadline := neat(min(max(float64(d.kinds[0].median)*d.log("deadline", 3, 60), float64(d.kinds[0].p99), 1e8), float64(longest)))
	d.say("deadline %v", deadline)
	network := object{}
	if d.hit("network", 0.5) {
		network["delay"] = d.span("delay", time.Millisecond, deadline/100+time.Millisecond).String()
	}
	if d.hit("loss", 0.05) {
		network["loss"] = 0.002
	}
	for i := range d.kinds {
		k := &d.kinds[i]
		if k.deadline = deadline; i >= len(d.services) {
			k.deadline = min(max(deadline, neat(2*k.p99)), longest)
		}
		k.file["deadline"] = k.deadline.String()
		maps.Copy(k.file, network)
	}
	for _, s := range d.services {
		backends, _ := s["backends"].(int)
		s["queue"] = int(d.capacity / float64(backends) * deadline.Seconds() * d.log("queue", 0.05, 4)) // deadlines' work
	}
	d.say("%v queues of %v", d.services[len(d.services)-1]["order"], d.services[len(d.services)-1]["queue"])
}

// drawTrouble draws the faults of the trouble, and of which backends: a fault that lasts, or a sequence in the first phase. In some
// scenarios, a part of the calls also has a final answer other than OK.
func (d *draft) drawTrouble() {
	kind := d.one("trouble", 0.36, 0.52, 0.12)
	part := 0.4
	if d.set == loops {
		part = 0.7
	}
	emptied := d.cached && d.hit("the cache is emptied", part)
	if emptied || d.hit("harsher trouble", 0.2) {
		kind = 3
	}
	switch kind {
	case 1:
		f := d.drawFault()
		for i := 1; i < len(d.phases)-1; i++ {
			d.phases[i]["faults"] = []object{f}
		}
	case 2:
		load, _ := d.phases[1]["load"].(float64)
		d.phases = slices.Replace(d.phases, 1, 2, d.drawSequence(load)...)
	case 3:
		d.drawHarsherTrouble(emptied)
	}
	if d.hit("final answers", 0.12) {
		f := d.fault("flaky", d.even("part of final answers", 0.02, 0.4))
		f["code"] = "NOT_FOUND"
		d.say("%v of the answers NOT_FOUND", f["flaky"])
		for _, p := range d.phases {
			faults, _ := p["faults"].([]object)
			p["faults"] = append([]object{f}, faults...)
		}
	}
}

// drawFault draws the fault of some backends, or of all.
func (d *draft) drawFault() object {
	n := d.count("backends with a fault", 1, max(d.backends*2/5, 1))
	if d.hit("fault of most", 0.15) {
		n = min(d.backends/2+1, d.backends)
	}
	if d.hit("fault of all", 0.2) {
		n = 0
	}
	kind := d.one("fault", 0.26, 0.27, 0.13, 0.1, 0.11, 0.13)
	key := []string{"down", "hang", "flaky", "slow", "slower", "workers"}[kind]
	value := []any{
		true, true, d.even("failing part", 0.02, 0.6),
		object{"part": d.even("slow tail", 0.01, 0.3), "by": neat(d.mean * d.log("slow by", 5, 50)).String()},
		tidy(d.log("times slower", 1.2, 8)), int(d.part("workers left") * float64(d.workers)),
	}[kind]
	backends := make([]int, n)
	for i := range backends {
		backends[i] = i
	}
	f := d.fault(key, value, backends...)
	if code := d.one("code of failures", 0.8, 0.2); code > 0 && kind%2 == 0 {
		f["code"] = "ABORTED"
	}
	d.say("%s %v %v at backends %v", key, value, f["code"], backends)
	return f
}

// fault returns a fault of these backends of the last service, of all without any.
func (d *draft) fault(key string, value any, backends ...int) object {
	f := object{"service": "shop", key: value}
	if len(backends) > 0 {
		f["backends"] = backends
	}
	return f
}

// drawSequence draws a trouble with its own course: a cold start, a rolling deploy, broken connections, or an outage after
// which more calls come than usual.
func (d *draft) drawSequence(load float64) (list []object) {
	add := func(length time.Duration, load float64, faults ...object) {
		list = append(list, newPhase("TROUBLE", length, load, faults...))
	}
	cold, n := tidy(d.log("cold", 1.2, 8)), min(d.backends, 6)
	kind, herd := d.one("sequence", 0.25, 0.3, 0.2, 0.25), tidy(d.log("herd", 1, 3))
	d.say("%s (cold: %v times slower)", []string{"cold start", "rolling deploy", "connections break", fmt.Sprintf("outage, then %v times the load", herd)}[kind], cold)
	switch kind {
	case 0:
		add(d.trouble/20, load, d.fault("down", true))
		add(d.trouble/2, load, d.fault("slower", cold))
	case 1:
		for i := range n {
			add(d.trouble/time.Duration(n), load, d.fault("down", true, i), d.fault("slower", cold, (i+n-1)%n))
		}
	case 2:
		for range 2 {
			add(d.span("break", 20*time.Millisecond, 300*time.Millisecond), load, d.fault("down", true))
			add(d.trouble/2, load)
		}
	default:
		add(d.trouble/2, load, d.fault([]string{"down", "hang"}[d.one("outage", 0.5, 0.5)], true))
		add(d.trouble/4, tidy(load*herd))
		add(d.trouble/4, load)
	}
	return list
}
