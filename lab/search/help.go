// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"time"
)

// The kinds of scenarios: the rows of the second and third table.
const (
	rowUsual    = "no twist"
	rowHarsher  = "loops, limits, crowds, pauses, unequal rates, old clients"
	rowOld      = "old processes"
	rowLoops    = "an overload that feeds itself"
	rowFailures = "retries after failures, no blips"
	rowConstant = "timeouts and hedges, times constant or σ 0.2"
	rowSpread   = "timeouts and hedges, more spread"
	rowBlips    = "blips"
	rowOldHelp  = "all of these, old processes"
)

// rows returns the kinds of scenarios of the sets that have one question.
func rows(helps bool) []string {
	if helps {
		return []string{rowFailures, rowConstant, rowSpread, rowBlips, rowOldHelp}
	}
	return []string{rowUsual, rowHarsher, rowOld, rowLoops}
}

// row returns the kind of all scenarios of a set, or "" if it has several.
func (s set) row() string {
	return map[set]string{harmOld: rowOld, loops: rowLoops, helpOld: rowOldHelp}[s]
}

// Bounds of the calls in a scenario of lost help.
const (
	mostRate   = 500 // calls a second of all clients
	leastCalls = 300 // in the trouble
)

// What clients have done before the trouble that have lived for long.
const (
	age      = 10 * time.Minute
	ageCalls = 1000 // calls of all clients together
	oldCalls = 20   // in sets of old processes, calls of each client by each method
	mostOld  = 10_000
)

// quietLoad returns the load of the time in which clients have lived.
func (d *draft) quietLoad() float64 {
	if !d.set.old() {
		return tidy(min(max(ageCalls/(d.rate*age.Seconds()), 0.01), d.base))
	}
	least := 1.0 // of the methods' shares
	for _, k := range d.kinds {
		share, _ := k.file["share"].(float64)
		least = min(least, cmp.Or(share, 1))
	}
	calls := min(max(2*ageCalls, oldCalls*float64(d.clients)/least), mostOld)
	return min(math.Ceil(100*calls/(d.rate*age.Seconds()))/100, d.base)
}

// drawHealthy draws a chain of services that have room for all calls, and the clients.
func (d *draft) drawHealthy() {
	d.clients = d.count("processes", 1, 300)
	each := d.log("calls a second of each", 0.03, 200)
	d.clients = min(d.clients, max(int(mostRate/each), 1))
	d.trouble = neat(float64(time.Second) * min(max(d.log("calls", 800, 3000)/(each*float64(d.clients)), 8), 240))
	if least := leastCalls / (each * d.trouble.Seconds()); float64(d.clients) < least {
		d.clients = min(int(least)+1, 300)
	}
	d.base, d.rate = 1, max(tidy(each*float64(d.clients)), 0.01)
	d.say("%d processes of %.2g calls/s", d.clients, each)

	d.row = rowConstant
	names := []string{"front", "orders", "shop"}
	for _, name := range names[2-d.one("hops", 0.7, 0.2, 0.1):] {
		load := d.even("load", 0.2, 0.75)
		d.backends = d.count("backends", 2, 10)
		times := d.drawHelpTime()
		need := d.rate * d.mean / 1e9 / load
		d.workers = int(math.Ceil(need / float64(d.backends-1))) // one may be broken
		d.addService(object{
			"name": name, "backends": d.backends, "workers": d.workers, "time": times,
			"refuse":    []string{"RESOURCE_EXHAUSTED", "UNAVAILABLE"}[d.one("refuse", 0.5, 0.5)],
			"abandoned": []string{"SERVE", "DROP"}[d.one("abandoned", 0.7, 0.3)],
		})
		d.say("%s: load %v of %d backends of %d workers", name, load, d.backends, d.workers)
	}
	d.capacity = float64(d.backends*d.workers) / d.mean * 1e9
	if len(d.services) == 1 && d.hit("costly calls", 0.2) {
		share, work := tidy(d.log("part of costly calls", 0.05, 0.5)), tidy(d.log("work of costly calls", 2, 15))
		d.kinds[0].file["share"] = tidy(1 - share)
		d.addKind("shop", "/List", share, work)
		d.workers = int(math.Ceil(float64(d.workers) * (1 + share*(work-1))))
		d.services[0]["workers"] = d.workers
		d.say("%.0f %% of the calls %.2g times the work", 100*share, work)
	}
}

// drawHelpTime draws how long requests take: constant, with little or much spread, with a tail, or much less for those that a
// cache answers.
func (d *draft) drawHelpTime() any {
	median := neat(d.log("median", 2, 400) * 1e6)
	sigma := []float64{0.2, 0.4, 0.7, 1}[d.one("spread", 0.2, 0.35, 0.25, 0.2)]
	shape := d.one("times", 0.16, 0.48, 0.18, 0.18)
	if shape > 1 || shape == 1 && sigma > 0.2 {
		d.row = rowSpread
	}
	lognormal := func(sigma float64) object {
		p99 := neat(float64(median) * math.Exp(sigma*2.326)) // 2.326 is the 99 % quantile of the normal distribution
		return object{"lognormal": object{"median": median.String(), "p99": p99.String()}}
	}
	d.mean = float64(median) * math.Exp(sigma*sigma/2)
	switch shape {
	case 0:
		d.mean = float64(median)
		d.say("constant times of %v", median)
		return median.String()
	case 1:
		d.say("times of %v, σ %v", median, sigma)
		return lognormal(sigma)
	case 2:
		hit, part := neat(max(float64(median)*d.even("time of a hit", 0.02, 0.2), 1e6)), d.even("part of misses", 0.1, 0.6)
		d.mean = part*d.mean + (1-part)*float64(hit)
		d.say("a cache: %v, or %v in %.2g, σ %v", hit, median, part, sigma)
		return object{"bimodal": object{"usual": hit.String(), "slow": lognormal(sigma), "part": part}}
	default:
		sigma = d.even("heavy tail", 1, 1.6)
		d.mean = float64(median) * math.Exp(sigma*sigma/2)
		d.say("heavy-tailed times of %v, σ %v", median, sigma)
		return lognormal(sigma)
	}
}

// usual returns what users take for the usual time of a kind of calls: with a cache, a miss's.
func (k *kind) usual() time.Duration { return max(k.median, k.p95/4) }

// drawHelpCalls draws deadlines, networks and queues.
func (d *draft) drawHelpCalls() {
	network := object{}
	if d.hit("network", 0.5) {
		network["delay"] = d.span("delay", time.Millisecond, 5*time.Millisecond).String()
	}
	medians := d.log("deadline", 3, 20)
	for i := range d.kinds {
		k := &d.kinds[i]
		k.deadline = min(max(neat(float64(k.usual())*medians), 30*time.Millisecond), 20*time.Second)
		maps.Copy(k.file, network)
	}
	for i := range d.kinds {
		k := &d.kinds[i]
		if i < len(d.services) { // a hop has the time of its caller
			k.deadline = d.kinds[0].deadline
		}
		k.file["deadline"] = k.deadline.String()
	}
	d.say("deadline %v", d.kinds[0].deadline)
	for i, s := range d.services {
		workers, _ := s["workers"].(int)
		s["queue"] = int(float64(workers) * (1 + d.kinds[i].deadline.Seconds()/d.kinds[i].median.Seconds()*d.log("queue", 0.1, 4)))
	}
}

// drawHelpPolicy draws a policy of lost help.
func (d *draft) drawHelpPolicy() {
	d.shape = shape{
		attempts: []int{3, 4, 2, 5}[d.one("attempts", 0.35, 0.35, 0.2, 0.1)],
		backoff:  neat(min(d.log("backoff", 1e7, 2e8), float64(d.kinds[0].deadline)/10)),
		codes:    [][]string{{"UNAVAILABLE"}, {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}}[d.one("codes", 0.5, 0.5)],
		onlyLast: len(d.services) > 1 && d.hit("only the last hop", 0.3),
	}
	d.shape.slow = []slow{slowNothing, slowTimeout, slowHedge}[d.one("policy", 0.35, 0.45, 0.2)]
	d.drawElsewhere()
	medians := d.log("attempt timeout", 2, 10)
	d.shape.slowAfter = func(k *kind) time.Duration {
		if d.shape.slow == slowHedge {
			return max(k.p95, k.median*6/5)
		}
		return time.Duration(float64(k.usual()) * medians)
	}
	slow := []string{"retries", fmt.Sprintf("attempt timeout of medians: %.2g", medians), "hedges at p95"}[d.shape.slow]
	d.say("%d attempts, %s", d.shape.attempts, slow)
	if d.shape.slow == slowNothing {
		d.row = rowFailures
	}
}

// drawMendable draws the phases, with one fault that retries can mend.
func (d *draft) drawMendable() {
	var faults []object
	add := func(length time.Duration, more ...object) {
		d.phases = append(d.phases, newPhase("TROUBLE", length, 1, append(append([]object{}, faults...), more...)...))
	}
	if d.hit("final answers", 0.3) {
		f := d.fault("flaky", d.even("part of final answers", 0.02, 0.4))
		f["code"], f["atOnce"] = "NOT_FOUND", d.hit("fast final answers", 0.5)
		faults = append(faults, f)
		d.say("%v of the answers NOT_FOUND (at once: %v)", f["flaky"], f["atOnce"])
	}
	lead := func(length time.Duration, load float64) {
		d.phases = append(d.phases, newPhase("LEAD", length, load, faults...))
	}
	if d.hit("old clients", 0.3) || d.set.old() { // they have made few calls in ten minutes
		lead(age, d.quietLoad())
		d.say("old clients")
	}
	lead(neat(float64(d.trouble)*d.log("length of the lead", 0.03, 0.5)), 1)

	one := func(key string, value any) object { return d.fault(key, value, 0) }
	weights := []float64{0.35, 0, 0, 0.1, 0.12, 0, 0.23, 0.15} // faults that retries after failures can mend
	if d.shape.slow != slowNothing {
		weights = []float64{0.22, 0.2, 0.15, 0.09, 0.04, 0.06, 0.15, 0.09}
	}
	kind := d.one("fault", weights...)
	switch kind {
	case 0:
		add(d.trouble, one("down", true))
	case 1:
		add(d.trouble, one("hang", true))
	case 2:
		by := neat(float64(d.kinds[0].deadline) * d.log("slow by", 0.3, 5))
		add(d.trouble, one("slow", object{"part": 1, "by": by.String()}))
	case 3:
		part := d.even("failing part of one", 0.05, 0.3)
		if d.shape.slow == slowNothing || !d.hit("requests are lost", 0.5) {
			add(d.trouble, one("flaky", part))
		} else {
			add(d.trouble, one("slow", object{"part": part, "by": "1h"}))
		}
	case 4: // restarts in turn
		n := min(d.backends, 8)
		down := min(d.span("restart", 200*time.Millisecond, 5*time.Second), d.trouble/time.Duration(n))
		for i := range n {
			add(down, d.fault("down", true, i))
			if rest := d.trouble/time.Duration(n) - down; rest > 10*time.Millisecond {
				add(rest)
			}
		}
	case 5: // cold
		cold := d.log("cold", 4, 30)
		for range 3 {
			add(d.trouble/3, one("slower", tidy(cold)))
			cold = math.Sqrt(cold)
		}
	case 6:
		d.row = rowBlips
		blip, every := d.span("blip", 50*time.Millisecond, 500*time.Millisecond), d.log("every", 3, 15)
		const most = 200
		every = max(every, d.trouble.Seconds()/blip.Seconds()/most)
		n := max(int(d.trouble.Seconds()/(blip.Seconds()*every)), 1)
		for range n {
			add(blip, d.fault("down", true))
			add(neat(float64(blip) * (every - 1)))
		}
	default:
		add(d.trouble, d.fault("flaky", d.even("failing part", 0.01, 0.1)))
	}
	d.say("%s", []string{
		"one is down", "one hangs", "one is slow", "one loses requests", "restarts in turn", "one is cold", "blips", "random failures",
	}[kind])
}
