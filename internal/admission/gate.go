// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission judges whether a service can still answer a call in time, by what a client sees: how long
// the last answers took, how many a second there are, how many of its attempts run, and which deadlines were missed.
//
// In an overload, requests wait in a queue for longer than their callers do, and the service works on requests of callers
// that have left. A call that is refused at once, before it is sent, costs nothing; and those that are sent
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
	stays  = 5   // windows that a gate stays armed after the last slow answer
)

// Never is the time that a call without a deadline has.
const Never = time.Duration(math.MaxInt64)

// Gate refuses calls of one method to one target while they cannot be answered in time. Times are those of one clock
// that may lag a little between goroutines.
//
//	  deadlines are missed, a queue grows, or a server says that it is full
//	     ┌───────────────────────────────────────────────────────┐
//	     │                                                       ▼
//	admits all ◄── no slow answer for some windows ──────── armed: are all of the last answers slow,
//	                                                        and more run than are answered in time?
//	                                                        no: admits      yes: refuses
//
// There are no modes, probes or timers: one attempt may always run, and its answer is the probe. In a queue, the
// rate of the answers is the service's capacity, so that the wait settles just below the deadline. A service that is
// slow and answers in time is never refused anything: a gate is armed by more than slow answers.
type Gate struct {
	mu       sync.Mutex            // guards all below
	running  int                   // attempts
	critical int                   // of them, those of critical calls
	last     [recent]time.Duration // answers
	next     int                   // place of the oldest of last
	heard    int                   // answers, at most recent
	at       time.Duration         // of the newest
	fastest  time.Duration         // of all answers
	windows  windows
	climb    climb
	armed    until
	limit    limit
	state    State

	utilization [recent]float64 // as servers have reported it last
	reports     int             // of them
	reported    time.Duration   // when the newest came
	full        until           // a server has said that it is
	speaks      bool            // servers say how busy they are
}

// New makes a gate that has seen nothing, and so admits all.
func New() *Gate { return new(Gate) }

// Class returns the gate as calls of a criticality see it, of a policy with that admission. They are refused if it is
// enforced; else the gate counts which it would have refused.
func (g *Gate) Class(a policy.Admission, c policy.Criticality, enforced bool) Class {
	return Class{g, c, a == policy.AdmissionAuto && c != policy.CriticalitySheddable, enforced}
}

// Class is a gate for calls of one criticality. All of its methods are safe for concurrent use. The zero value is none.
type Class struct {
	gate        *Gate
	criticality policy.Criticality
	waits       bool // for servers that say how busy they are, before it refuses calls
	enforced    bool
}

// Any reports whether there is a gate.
func (c Class) Any() bool { return c.gate != nil }

// Enter asks for a call that has so much time left, Never without a deadline. It returns how many attempts run with its
// first one; 0 if the call is refused. Else Answered or Leave follows, once. A call is made that would be refused if its
// policy were enforced.
func (c Class) Enter(now, left time.Duration) (running int, would bool) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	if left != Never {
		g.windows.newer.longest = max(g.windows.newer.longest, left)
	}
	refuse := c.queued(now, left) && g.crowded(left, c.criticality)
	refuse = g.limit.allow(now, refuse, g.full.holds(now))
	switch {
	case !refuse:
	case c.enforced:
		g.state.Refused++
		return 0, false
	default:
		g.state.WouldRefuse++
	}
	return g.run(c.criticality), refuse
}

// Queued reports whether an extra attempt with so much time left would only make the queue longer.
func (c Class) Queued(now, left time.Duration) bool {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return c.queued(now, left)
}

// queued reports whether there is a queue that is too long for a call that has so much time left. It requires mu.
func (c Class) queued(now, left time.Duration) bool {
	g := c.gate
	return g.armed.holds(now) && (!c.waits || g.speaks) && g.queued(now, left)
}

// Add says that an extra attempt runs from now on: Answered or Leave follows, once. It returns how many run with it.
func (c Class) Add(now time.Duration) (running int) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	return g.run(c.criticality)
}

// Leave says that an attempt of a call that had so much time doesn't run any more, and has no answer that says how long the
// service takes.
func (c Class) Leave(now, left time.Duration, why Leaving) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(now, c.criticality)
	switch why {
	case LeavingAnswered:
		g.windows.newer.answers++
	case LeavingMissed:
		g.miss(now, left)
	case LeavingRefused:
		g.speaks = true
		fallthrough
	case LeavingFull:
		g.sayFull(now)
	default:
	}
}

// Leaving is why an attempt doesn't run any more.
type Leaving uint8

// The ways to leave.
const (
	LeavingOther    Leaving = iota // they say nothing of the service
	LeavingAnswered                // it was answered, and nothing tells when
	LeavingMissed                  // its call's deadline has passed
	LeavingFull                    // a server has no resources for it
	LeavingRefused                 // a server has refused to work on it
)

// Answered says that an attempt was answered, and how long that took. It was sent when the call had so much time left, and
// so many attempts ran.
func (c Class) Answered(now, took, left time.Duration, running int) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(now, c.criticality)
	g.windows.newer.answers++
	if part(took, left) <= most {
		g.windows.newer.inTime = max(g.windows.newer.inTime, running)
	}
	if g.heard == 0 || took < g.fastest {
		g.fastest = took
	}
	g.last[g.next] = took
	g.next = (g.next + 1) % recent
	g.heard = min(g.heard+1, recent)
	g.at = max(g.at, now)
	if grows := g.climb.add(now, took, left); grows || g.armed.holds(now) && part(took, left) > slow {
		g.arm(now)
	}
}

// Reported says which utilization a server has reported with an answer: 1 is all that it can do. The answer itself is
// told by Answered or Leave.
func (c Class) Reported(now time.Duration, utilization float64) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.utilization[g.reports%recent] = utilization
	g.reports++
	g.reported = max(g.reported, now)
	g.speaks = true
	if utilization >= loaded {
		g.sayFull(now)
	}
}

// pass lets time pass. It requires mu, as all below.
func (g *Gate) pass(now time.Duration) { g.windows.pass(now, g.running) }

// run counts an attempt that runs from now on.
func (g *Gate) run(c policy.Criticality) (running int) {
	g.running++
	if c == policy.CriticalityCritical {
		g.critical++
	}
	return g.running
}

// end counts an attempt that doesn't run any more.
func (g *Gate) end(now time.Duration, c policy.Criticality) {
	g.pass(now)
	g.running--
	if c == policy.CriticalityCritical {
		g.critical--
	}
}

// arm lets the gate refuse calls.
func (g *Gate) arm(now time.Duration) { g.armed.extend(now + stays*g.windows.length()) }

// miss takes in a deadline that was missed. While the last answers were slow, that is one more slow answer: when the queue
// is longer than the deadline, there are no others.
func (g *Gate) miss(now, left time.Duration) {
	g.windows.newer.misses++
	if g.heard == recent && part(slices.Min(g.last[:]), left) > slow {
		g.at = max(g.at, now)
	}
	if g.windows.missing() {
		g.arm(now)
	}
}

// sayFull notes that a server has said that it is full.
func (g *Gate) sayFull(now time.Duration) {
	g.arm(now)
	g.full.extend(now + g.windows.length())
}

// queued reports whether every recent answer took most of the time that is left.
func (g *Gate) queued(now, left time.Duration) bool {
	if left == Never || g.heard < recent || (now-g.at)/memory > left {
		return false
	}
	fastest := slices.Min(g.last[:])
	return part(fastest, left) > slow && fastest > above*g.fastest && !g.idle(now, left)
}

// crowded reports whether as many attempts run as are answered in the time that is left, and as were answered in time
// lately. One may always run.
func (g *Gate) crowded(left time.Duration, c policy.Criticality) bool {
	room, running := most*left.Seconds()*g.windows.perSecond(), g.running
	room = max(room, float64(g.windows.inTime()))
	switch c {
	case policy.CriticalitySheddable:
		room /= 2
	case policy.CriticalityCritical:
		running = g.critical
	default:
	}
	return float64(running) >= max(room, 1)
}

// idle reports whether a server has said lately that it is not busy: then it is slow without a queue.
func (g *Gate) idle(now, left time.Duration) bool {
	return g.reports >= recent && (now-g.reported)/memory <= left && slices.Min(g.utilization[:]) < loaded
}

// State is a reading of a gate.
type State struct {
	Running     int    // attempts that have not been answered
	Refused     uint64 // calls, so far
	WouldRefuse uint64 // calls that were made since no mode enforces their policy
}

// State reads the gate.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.state
	s.Running = g.running
	return s
}
