// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission judges whether a service can still answer a call in time, by what a client sees: how long
// the last answers took, how many a second there are, and how many of its attempts run.
//
// In an overload, requests wait in a queue for longer than their callers do, and the service works on what nobody
// waits for any more. A call that is refused at once, before it is sent, costs nothing; and those that are sent
// are answered in time.
package admission

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// The numbers of the rule. A part is one of the time that a call has until its deadline.
const (
	slow   = 0.6 // from this part on, answers are slow
	most   = 0.9 // the part that attempts may take which run already
	memory = 2   // times the time that is left, an answer says something: the end of a long queue has none
	recent = 2   // answers: while any of them was fast, there is no queue
	above  = 2   // times the fastest answer ever: below that, slow is how the service is
	loaded = 0.8 // a server that reports less utilization has no queue
)

// Never is the time that a call without a deadline has.
const Never = time.Duration(math.MaxInt64)

// Gate refuses calls of one method to one target while they cannot be answered in time. Times are those of one clock
// that may lag a little between goroutines.
//
//	           the fastest of the last answers is slow
//	     ┌──────────────────────────────────────────────────┐
//	     │                                                  ▼
//	admits all                                  as many run as are answered in time?
//	     ▲                                      no: admits      yes: refuses
//	     │                                                  │
//	     └──────────────────────────────────────────────────┘
//	           an answer is fast, or none has come for long, or a server says that it is not busy
//
// There are no modes, probes or timers: one attempt may always run, and its answer is the probe. In a queue, the
// rate of the answers is the service's capacity, so that the wait settles just below the deadline.
type Gate struct {
	classes [classes]Class // by criticality
	counts  Class

	mu      sync.Mutex // guards all below
	running [classes]int
	last    [recent]time.Duration // answers
	next    int                   // place of the oldest of last
	heard   int                   // answers, at most recent
	at      time.Duration         // of the newest
	fastest time.Duration         // of all answers
	answers rate
	refused uint64

	utilization [recent]float64 // as servers have reported it last
	reports     int             // of them
	reported    time.Duration   // when the newest came
}

const classes = int(policy.CriticalityCritical) + 1

// New makes a gate that has seen nothing, and so admits all.
func New() *Gate {
	g := new(Gate)
	for i := range g.classes {
		g.classes[i] = Class{g, policy.Criticality(i), true}
	}
	g.counts = Class{g, policy.CriticalityDefault, false}
	return g
}

// Class returns the gate as calls of a criticality see it.
func (g *Gate) Class(c policy.Criticality) *Class { return &g.classes[min(int(c), classes-1)] }

// Counts returns the gate as calls see it that are counted and never refused.
func (g *Gate) Counts() *Class { return &g.counts }

// Class is a gate for calls of one criticality. All of its methods are safe for concurrent use.
type Class struct {
	gate        *Gate
	criticality policy.Criticality
	refuses     bool
}

// Enter asks for a call that has so much time left, Never without a deadline. If it may be made, its first
// attempt runs from now on: Answered or Leave follows, once.
func (c *Class) Enter(now, left time.Duration) bool {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.refuses && g.queued(now, left) && g.full(now, left, c.criticality) {
		g.refused++
		return false
	}
	g.running[c.criticality]++
	return true
}

// Queued reports whether an extra attempt with so much time left would only make the queue longer.
func (c *Class) Queued(now, left time.Duration) bool {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queued(now, left)
}

// Add says that an extra attempt runs from now on: Answered or Leave follows, once.
func (c *Class) Add() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[c.criticality]++
}

// Leave says that an attempt does not run any more, without an answer that says anything of the service's queue.
func (c *Class) Leave() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[c.criticality]--
}

// Answered says that an attempt was answered, and how long that took.
func (c *Class) Answered(now, took time.Duration) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[c.criticality]--
	g.answers.add(now)
	if g.heard == 0 || took < g.fastest {
		g.fastest = took
	}
	g.last[g.next] = took
	g.next = (g.next + 1) % recent
	g.heard = min(g.heard+1, recent)
	g.at = max(g.at, now)
}

// Reported says which utilization a server has reported with an answer: 1 is all that it can do. The answer itself is
// told by Answered or Leave.
func (c *Class) Reported(now time.Duration, utilization float64) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.utilization[g.reports%recent] = utilization
	g.reports++
	g.reported = max(g.reported, now)
}

// queued reports whether every recent answer took most of the time that is left. It requires mu.
func (g *Gate) queued(now, left time.Duration) bool {
	if left == Never || g.heard < recent || (now-g.at)/memory > left {
		return false
	}
	fastest := slices.Min(g.last[:])
	return float64(fastest) > slow*float64(left) && fastest > above*g.fastest && !g.idle(now, left)
}

// full reports whether as many attempts run as are answered in the time that is left. One may always run. It
// requires mu.
func (g *Gate) full(now, left time.Duration, c policy.Criticality) bool {
	room, running := most*left.Seconds()*g.answers.perSecond(now), g.sum()
	switch c {
	case policy.CriticalitySheddable:
		room /= 2
	case policy.CriticalityCritical:
		running = g.running[c]
	default:
	}
	return float64(running) >= max(room, 1)
}

// idle reports whether a server has said lately that it is not busy: then it is slow without a queue. It requires mu.
func (g *Gate) idle(now, left time.Duration) bool {
	return g.reports >= recent && (now-g.reported)/memory <= left && slices.Min(g.utilization[:]) < loaded
}

func (g *Gate) sum() int {
	var n int
	for _, running := range g.running {
		n += running
	}
	return n
}

// State is a reading of a gate.
type State struct {
	Running int    // attempts that have not been answered
	Refused uint64 // calls, so far
}

// State reads the gate.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Running: g.sum(), Refused: g.refused}
}
