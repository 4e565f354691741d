// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
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

// gate refuses calls of one method to one target while they can't be answered in time. All times are of one clock, which may
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
type gate struct {
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
	state   admitting.State
	full    until // a server has reported that it is full
}

var _ admitting.Gate = (*gate)(nil)

// Allow implements [admitting.Gate]. It refuses no attempt but the first: of the others, Open was asked before.
func (g *gate) Allow(attempt int, now, left time.Duration, enforced bool) (running int, would bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	if attempt > 1 {
		return g.countRunning(), false
	}
	refuse := g.late(now, left) && g.crowded(left)
	refuse = g.limit.allow(now, refuse, g.full.holds(now))
	switch {
	case !refuse:
	case enforced:
		g.state.Refused++
		return 0, false
	default:
		g.state.WouldRefuse++
	}
	return g.countRunning(), refuse
}

// Open implements [admitting.Gate]. While calls wait too long, an extra attempt would only make the queue longer.
func (g *gate) Open(now, left time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.late(now, left)
}

// Done implements [admitting.Gate].
func (g *gate) Done(now time.Duration, e admitting.End) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(now)
	g.running--
	switch e.How {
	case admitting.Answered:
		g.recordAnswer(now, e)
	case admitting.Untimed:
		g.windows.newer.answers++
	case admitting.Missed:
		g.miss(now, e.Left)
	case admitting.Full:
		g.sayFull(now)
	default:
	}
}

// State implements [admitting.Gate].
func (g *gate) State() admitting.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.state
	s.Running = g.running
	return s
}

// pass advances the time. g.mu must be held, as for all methods below.
func (g *gate) pass(now time.Duration) { g.windows.pass(now, g.running) }

// countRunning counts a new running attempt.
func (g *gate) countRunning() (running int) {
	g.running++
	return g.running
}

// recordAnswer records a response.
func (g *gate) recordAnswer(now time.Duration, e admitting.End) {
	g.windows.newer.answers++
	g.windows.recordEnd(e.Took)
	if part(e.Took, e.Left) <= most {
		g.windows.newer.inTime = max(g.windows.newer.inTime, e.Running)
	}
	if g.heard == 0 || e.Took < g.fastest {
		g.fastest = e.Took
	}
	g.last[g.next] = e.Took
	g.next = (g.next + 1) % recent
	g.heard = min(g.heard+1, recent)
	g.at = max(g.at, now)
	if grows := g.climb.recordAnswer(now, e.Took, e.Left); grows || g.armed.holds(now) && part(e.Took, e.Left) > slow {
		g.arm(now, e.Left)
	}
}

// arm lets the gate refuse calls, because of a call that had this time left.
func (g *gate) arm(now, left time.Duration) {
	if !g.armed.holds(now) {
		g.given = 0
	}
	g.given = max(g.given, left)
	g.armed.extend(now + stays*g.windows.length())
}

// miss records a missed deadline. If the last responses were slow, it also refreshes them: when the queue is longer than the
// deadline, no others come.
func (g *gate) miss(now, left time.Duration) {
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
func (g *gate) sayFull(now time.Duration) {
	g.arm(now, admitting.Never)
	g.full.extend(now + g.windows.length())
}

// late reports whether the queue is too long for a call with this time left, by an armed gate.
func (g *gate) late(now, left time.Duration) bool {
	return g.armed.holds(now) && g.given > left/asking && g.queued(now, left)
}

// queued reports whether every recent response took most of the time left.
func (g *gate) queued(now, left time.Duration) bool {
	if left == admitting.Never || g.heard < recent || (now-g.at)/memory > left {
		return false
	}
	fastest := slices.Min(g.last[:])
	return part(fastest, left) > slow && fastest > above*g.fastest
}

// crowded reports whether the running attempts are as many as the service answers in the time left, and as many as it has
// recently answered in time. One may always run.
func (g *gate) crowded(left time.Duration) bool {
	room := max(most*left.Seconds()*g.windows.perSecond(), float64(g.windows.inTime()))
	return float64(g.running) >= max(room, 1)
}
