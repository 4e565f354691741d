// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission decides whether a service can still answer a call in time, based on what a client observes: how long the
// last responses took, the rate of responses, how many of its attempts run, and missed deadlines.
//
// In an overload, requests wait in a queue longer than their callers do, and the service works on requests of callers that have
// left. Refusing a call before it is sent costs nothing, and lets the service answer the others in time.
package admission

import (
	"math"
	"slices"
	"sync"
	"time"
)

// The constants of the rule. A part is a part of the time that a call has until its deadline.
const (
	slow   = 0.6 // from this part on, a response is slow
	most   = 0.9 // the part that running attempts may take
	memory = 2   // answers older than this many times the time left don't count: the end of a long queue has none
	recent = 2   // answers: if any of them was fast, there is no queue
	above  = 2   // times the fastest response ever: below that, the service itself is slow
	stays  = 5   // windows that a gate stays armed after the last slow response
	asking = 100 // a gate that a call has armed counts for those with less than so many times its time
)

// Never is the time left of a call without a deadline.
const Never = time.Duration(math.MaxInt64)

// Gate refuses calls of one method to one target while they can't be answered in time. All times are of one clock, which may
// lag a little between goroutines.
//
//	  deadlines are missed, a queue grows, or a server says that it is full
//	     ┌───────────────────────────────────────────────────────┐
//	     │                                                       ▼
//	admits all ◄── no slow answer for some windows ──────── armed: are all of the last answers slow,
//	                                                        and more run than are answered in time?
//	                                                        no: admits      yes: refuses
//
// There are no modes, probes or timers: one attempt may always run, and its response is the probe. With a queue, the rate of
// answers is the service's capacity, so the wait settles just below the deadline. A service that is slow but answers in time is
// never refused anything, because slow responses alone don't arm a gate.
type Gate struct {
	mu      sync.Mutex            // guards all below
	running int                   // attempts
	last    [recent]time.Duration // answers
	next    int                   // index of the oldest in last
	heard   int                   // answers, at most recent
	at      time.Duration         // when the newest came
	fastest time.Duration         // of all responses
	windows windows
	climb   climb
	armed   until
	given   time.Duration // the longest time of the calls that have armed it
	limit   limit
	state   State
	full    until // a server has reported that it is full
}

// New returns a gate without observations, which admits all calls.
func New() *Gate { return new(Gate) }

// Class returns the gate for calls that are enforced or not. If not, the gate only counts the calls that it would refuse.
func (g *Gate) Class(enforced bool) Class { return Class{g, enforced} }

// Class is a gate for enforced calls, or for others. All methods are safe for concurrent use. The zero value has no gate.
type Class struct {
	gate     *Gate
	enforced bool
}

// Any reports whether there is a gate.
func (c Class) Any() bool { return c.gate != nil }

// Enter asks to send a call with this time left, Never without a deadline. It returns the number of running attempts, including
// the call's first one, or 0 if the call is refused. Otherwise RecordAnswer or Leave must be called once. If the policy isn't
// enforced, would reports a call that is sent and would be refused.
func (c Class) Enter(now, left time.Duration) (running int, would bool) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	refuse := c.queued(now, left) && g.crowded(left)
	refuse = g.limit.allow(now, refuse, g.full.holds(now))
	switch {
	case !refuse:
	case c.enforced:
		g.state.Refused++
		return 0, false
	default:
		g.state.WouldRefuse++
	}
	return g.countRunning(), refuse
}

// Queued reports whether an extra attempt with this time left would only make the queue longer.
func (c Class) Queued(now, left time.Duration) bool {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return c.queued(now, left)
}

// queued reports whether the queue is too long for a call with this time left. The gate's mu must be held.
func (c Class) queued(now, left time.Duration) bool {
	g := c.gate
	return g.armed.holds(now) && g.given > left/asking && g.queued(now, left)
}

// Add records that an extra attempt is sent. It returns the number of running attempts, including this one. RecordAnswer or Leave
// must be called once.
func (c Class) Add(now time.Duration) (running int) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	return g.countRunning()
}

// Leave records that an attempt has ended without a response that shows how long the service takes. The call had this time left.
func (c Class) Leave(now, left time.Duration, why Leaving) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.uncountRunning(now)
	switch why {
	case LeavingAnswered:
		g.windows.newer.answers++
	case LeavingMissed:
		g.miss(now, left)
	case LeavingFull:
		g.sayFull(now)
	default:
	}
}

// Leaving is the reason why an attempt has ended.
type Leaving uint8

// The reasons.
const (
	LeavingOther    Leaving = iota // no information on the service
	LeavingAnswered                // it was answered, at an unknown time
	LeavingMissed                  // its call's deadline has passed
	LeavingFull                    // a server had no resources for it
)

// RecordAnswer records a response to an attempt, and how long it took. The call had this time left when the attempt was sent, and
// running attempts ran.
func (c Class) RecordAnswer(now, took, left time.Duration, running int) {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.uncountRunning(now)
	g.windows.newer.answers++
	g.windows.recordEnd(took)
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
	if grows := g.climb.recordAnswer(now, took, left); grows || g.armed.holds(now) && part(took, left) > slow {
		g.arm(now, left)
	}
}

// pass advances the time. g.mu must be held, as for all methods below.
func (g *Gate) pass(now time.Duration) { g.windows.pass(now, g.running) }

// countRunning counts a new running attempt.
func (g *Gate) countRunning() (running int) {
	g.running++
	return g.running
}

// uncountRunning ends the count of an attempt.
func (g *Gate) uncountRunning(now time.Duration) {
	g.pass(now)
	g.running--
}

// arm lets the gate refuse calls, because of a call that had this time left.
func (g *Gate) arm(now, left time.Duration) {
	if !g.armed.holds(now) {
		g.given = 0
	}
	g.given = max(g.given, left)
	g.armed.extend(now + stays*g.windows.length())
}

// miss records a missed deadline. If the last responses were slow, it also refreshes them: when the queue is longer than the
// deadline, no others come.
func (g *Gate) miss(now, left time.Duration) {
	g.windows.newer.misses++
	g.windows.recordEnd(left)
	if g.heard == recent && part(slices.Min(g.last[:]), left) > slow {
		g.at = max(g.at, now)
	}
	if g.windows.missing() {
		g.arm(now, left)
	}
}

// sayFull records that a server has reported that it is full.
func (g *Gate) sayFull(now time.Duration) {
	g.arm(now, Never)
	g.full.extend(now + g.windows.length())
}

// queued reports whether every recent response took most of the time left.
func (g *Gate) queued(now, left time.Duration) bool {
	if left == Never || g.heard < recent || (now-g.at)/memory > left {
		return false
	}
	fastest := slices.Min(g.last[:])
	return part(fastest, left) > slow && fastest > above*g.fastest
}

// crowded reports whether the running attempts are as many as the service answers in the time left, and as many as it has
// recently answered in time. One may always run.
func (g *Gate) crowded(left time.Duration) bool {
	room := max(most*left.Seconds()*g.windows.perSecond(), float64(g.windows.inTime()))
	return float64(g.running) >= max(room, 1)
}

// State is a reading of a gate.
type State struct {
	Running     int    // unanswered attempts
	Refused     uint64 // calls, so far
	WouldRefuse uint64 // calls that were sent because their policy isn't enforced: an upper bound, since each lengthens the queue
}

// State returns the state of the gate.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.state
	s.Running = g.running
	return s
}
