// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
)

// fleet is a [Fleet] in a run: a source of calls.
type fleet struct {
	world    *world
	spec     *Fleet
	links    []*link // one for each of its calls
	shares   float64 // of all of them
	clients  int
	arrivals *rand.Rand // for times only, so that they do not depend on how calls end
	whose    *rand.Rand // which client calls
	choice   *rand.Rand // which call it makes
	rate     float64    // per second, in this phase
	oldest   int        // client, the next to be replaced
	counts   fleetCounts
}

// The events of a fleet.
const (
	callBegins  eventKind = iota
	processEnds           // the oldest
)

// handle implements [handler]. The number of a call is that of the phase for which it was scheduled.
func (f *fleet) handle(kind eventKind, number uint32) {
	switch {
	case kind == processEnds:
		f.replaceOldest()
	case number == f.world.phase:
		f.beginCall()
	}
}

// replaceOldest puts a new process in the place of the oldest one: it has full budgets and knows nothing, and it has to connect. The
// calls of the old one go on.
func (f *fleet) replaceOldest() {
	for _, l := range f.links {
		l.replaceProcess(f.oldest)
	}
	f.oldest = (f.oldest + 1) % f.clients
	f.scheduleEnd()
}

// scheduleEnd schedules the end of the oldest process. In a lifetime, each one ends once.
func (f *fleet) scheduleEnd() {
	if wait := f.spec.Lifetime / time.Duration(f.clients); wait > 0 && f.world.now+wait < f.world.until {
		f.world.after(wait, f, processEnds, 0)
	}
}

func (f *fleet) beginCall() {
	c := f.anyLink().newCall(f.anyClient(), nil, attempts.Never)
	f.counts.begun(c)
	c.startCall()
	f.scheduleCall()
}

func (f *fleet) anyClient() int {
	if f.clients > 1 {
		return f.whose.IntN(f.clients)
	}
	return 0
}

// anyLink draws the next call's link, by the calls' shares.
func (f *fleet) anyLink() *link {
	last := len(f.links) - 1
	if last == 0 {
		return f.links[0]
	}
	at := f.choice.Float64() * f.shares
	for _, l := range f.links[:last] {
		if at -= l.spec.share(); at < 0 {
			return l
		}
	}
	return f.links[last]
}

// applyLoad begins a phase. The exponential distribution has no memory, so the next call is drawn again.
func (f *fleet) applyLoad(p *Phase) {
	f.rate = f.spec.Rate * p.Load
	f.scheduleCall()
}

// scheduleCall schedules the next call, unless the phase ends first.
func (f *fleet) scheduleCall() {
	if f.rate == 0 {
		return
	}
	w := f.world
	wait := time.Duration(min(f.arrivals.ExpFloat64()/f.rate*float64(time.Second), longest))
	if w.now+wait < w.phaseEnd {
		w.after(wait, f, callBegins, w.phase)
	}
}

// endCall records the end of a call.
func (l *link) endCall(c *call, end *attempts.End, ok bool) {
	if f := l.fleet; f != nil {
		f.counts.countEnd(c, end, ok)
	}
}

// countExtra counts an attempt after the first.
func (l *link) countExtra(c *call) {
	if f := l.fleet; f != nil {
		f.counts.countExtra(c)
	}
}
