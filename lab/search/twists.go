// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// sayHarsher describes what the first generator did not draw.
func (d *draft) sayHarsher(format string, args ...any) {
	d.row = rowHarsher
	d.say(format, args...)
}

// The loops: what makes an overload feed itself, without any retry.
const (
	loopQueue   = "work slows with the queue"
	loopConnect = "connections cost work"
	loopCache   = "cache"                 // which only requests fill that are still awaited
	loopRestart = "processes come and go" // and have to connect
)

// hasLoop draws whether a scenario has a loop. In the set of loops each has one at least, and may have all.
func (d *draft) hasLoop(name string, part float64) bool {
	if d.set != loops {
		return d.hit(name, part)
	}
	d.times["loop at least"] = 0 // the same draw for all loops
	always := []string{loopQueue, loopConnect, loopCache, loopRestart}[d.one("loop at least", 1, 1, 1, 1)]
	return d.hit(name, 0.3) || name == always
}

// strength draws how strong a loop is. In the set of loops it may be much stronger.
func (d *draft) strength(name string, from, to, strongest float64) float64 {
	if d.set == loops {
		from, to = 1.5*from, strongest
	}
	return tidy(d.log(name, from, to))
}

// drawLoops draws loops. Their other side is a server that refuses what has waited for long.
func (d *draft) drawLoops(file object) {
	if d.hasLoop(loopQueue, 0.07) {
		file["thrash"] = d.strength("slowed by", 1.2, 4, 8)
		d.sayHarsher("with a full queue, work takes %v times as long", file["thrash"])
	}
	restarts := d.hasLoop(loopRestart, 0)
	if d.hasLoop(loopConnect, 0.07) || restarts {
		file["connect"] = d.strength("work of a connection", 1, 10, 40)
		d.sayHarsher("a connection costs %v times the work of a request", file["connect"])
	}
	if restarts {
		d.lifetime = d.span("lifetime", 2*time.Second, time.Minute)
		d.sayHarsher("each process lives for %v", d.lifetime)
	}
	if d.hit("CoDel", 0.05) {
		target := neat(d.mean * d.log("CoDel's target", 0.5, 5))
		interval := neat(float64(target) * d.log("CoDel's interval", 4, 20))
		file["codel"], file["order"] = object{"target": target.String(), "interval": interval.String()}, "FIFO"
		d.sayHarsher("CoDel of %v in %v", target, interval)
	}
	if !d.hasLoop(loopCache, 0.08) {
		return
	}
	// Without trouble, requests miss as often as entries expire, and cost as much on average as without a cache.
	hits, cheap, ttl := d.even("hits", 0.5, 0.95), d.log("work of a hit", 0.01, 0.3), d.span("entries expire", 5*time.Second, time.Minute)
	rate := d.base * d.capacity
	entries := max(int(rate*ttl.Seconds()*(1-hits)*(1-hits)/hits), 1)
	d.mean = float64(neat(d.mean / (1 - hits + hits*cheap)))
	file["cache"] = object{"entries": entries, "ttl": ttl.String(), "hit": neat(d.mean * cheap).String()}
	d.cached = true
	d.sayHarsher("a cache of %d entries for %v, %.0f %% hits", entries, ttl, 100*hits)
}

// drawLimits draws limits of the client, and of hops.
func (d *draft) drawLimits() {
	if d.hit("limit of each process", 0.06) {
		usual := d.rate * d.base * d.kinds[0].median.Seconds() / float64(d.clients) // requests of a process at a time
		limit := int(math.Ceil(usual * d.log("room in the limit", 2, 20)))
		for _, k := range d.kinds {
			k.file["limit"] = limit
		}
		d.sayHarsher("limit of %d attempts at a time", limit)
	}
	if len(d.services) > 1 && d.hit("deadlines of hops", 0.3) {
		left := d.kinds[0].deadline
		for _, s := range d.services[:len(d.services)-1] {
			left = neat(float64(left) * d.even("deadline of a hop", 0.3, 0.9))
			calls, _ := s["calls"].([]object)
			calls[0]["deadline"] = left.String()
		}
		d.sayHarsher("the last hop has %v", left)
	}
}

// drawHarsherTrouble draws crowds, pauses, slow starts, a brownout of one method, or an empty cache, in place of other troubles.
func (d *draft) drawHarsherTrouble(emptied bool) {
	load, _ := d.phases[1]["load"].(float64)
	var list []object
	add := func(length time.Duration, load float64, faults ...object) {
		list = append(list, newPhase("TROUBLE", length, tidy(load), faults...))
	}
	some := make([]int, d.count("backends with pauses", 1, d.backends))
	for i := range some {
		some[i] = i
	}
	kind := d.one("kind of harsher trouble", 0.3, 0.25, 0.25, 0.2)
	if emptied {
		kind = 4
	}
	d.sayHarsher("%s", []string{"crowds", "pauses", "slow starts", "brownout of a method", "the cache is emptied"}[kind])
	switch kind {
	case 0:
		for range 1 + int(4*d.part("crowds")) {
			add(d.span("length of a crowd", 100*time.Millisecond, 2*time.Second), load*d.log("size of a crowd", 2, 12))
			add(d.trouble/4, load)
		}
	case 1:
		pause, every := d.span("pause", 50*time.Millisecond, time.Second), d.log("a pause in", 3, 20)
		for range min(max(int(d.trouble.Seconds()/pause.Seconds()/every), 1), 10) {
			add(pause, load, d.fault("workers", 0, some...))
			add(neat(float64(pause)*(every-1)), load)
		}
	case 2: // one backend after the other is replaced by a slow one, which warms up
		n, cold := min(d.backends, 5), d.log("slow at first", 2, 10)
		for i := range n {
			for step := range 3 {
				add(d.trouble/time.Duration(3*n), load, d.fault("slower", tidy(math.Pow(cold, 1-float64(step)/3)), i))
			}
		}
	case 3:
		k := d.kinds[0]
		if len(d.kinds) > len(d.services) && d.hit("brownout of the costly method", 0.5) {
			k = d.kinds[len(d.kinds)-1]
		}
		if k.service != "shop" {
			k = d.kinds[len(d.services)-1]
		}
		f := d.fault([]string{"flaky", "hang", "slower"}[d.one("brownout", 0.4, 0.3, 0.3)], true)
		if _, ok := f["flaky"]; ok {
			f["flaky"] = d.even("part of the brownout", 0.2, 1)
		}
		if _, ok := f["slower"]; ok {
			f["slower"] = tidy(d.log("slower in the brownout", 2, 10))
		}
		f["method"] = k.method
		for i := 1; i < len(d.phases)-1; i++ {
			d.phases[i]["faults"] = []object{f}
		}
		return
	default:
		add(d.trouble/2, load, d.fault("flush", true))
		add(d.trouble/2, load)
	}
	d.phases = slices.Replace(d.phases, 1, 2, list...)
}

// drawAge lets some clients have lived for ten minutes, in which they made few calls.
func (d *draft) drawAge() {
	if !d.hit("old clients", 0.1) && !d.set.old() {
		return
	}
	faults, _ := d.phases[0]["faults"].([]object)
	d.phases = slices.Insert(d.phases, 0, newPhase("LEAD", age, d.quietLoad(), faults...))
	d.sayHarsher("old clients")
}

// drawFleets draws the clients: of equal rates, or a few busy ones beside the others.
func (d *draft) drawFleets(calls []object) []object {
	users := object{"name": "users", "clients": d.clients, "rate": d.rate, "calls": calls}
	if d.lifetime > 0 {
		users["lifetime"] = d.lifetime.String()
	}
	if d.set.helps() || !d.hit("unequal rates", 0.1) {
		return []object{users}
	}
	busy, share := d.count("busy processes", 1, 5), d.even("their share", 0.2, 0.9)
	users["rate"] = max(tidy(d.rate*(1-share)), 0.01)
	d.sayHarsher("%.0f %% of the calls by %d busy processes", 100*share, busy)
	return []object{users, {"name": "busy", "clients": busy, "rate": max(tidy(d.rate*share), 0.01), "calls": calls}}
}
