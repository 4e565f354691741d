// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
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
	rate     float64    // per second, at the begin of the phase
	slope    float64    // change of the rate per second
	entered  time.Duration
	counts   fleetCounts
}

// The events of a fleet.
const (
	callOfAny eventKind = iota // of a fleet with a rate; the number is the phase's
	callOfOne                  // of a client that thinks; the number is the client's
)

// handle implements [handler].
func (f *fleet) handle(kind eventKind, number uint32) {
	switch {
	case kind == callOfAny && number == f.world.phase:
		f.callFrom(f.anyClient())
		f.scheduleCall()
	case kind == callOfOne && f.world.now < f.world.until:
		f.callFrom(int(number))
	}
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

func (f *fleet) callFrom(client int) {
	c := f.anyLink().newCall(client, nil, attempts.Never)
	f.counts.begun(c)
	c.startCall()
}

// applyLoad begins a phase. The exponential distribution has no memory, so the next call is drawn again.
func (f *fleet) applyLoad(p *Phase) {
	f.rate, f.slope, f.entered = f.spec.Rate*p.Load, 0, f.world.now
	if p.LoadTo != nil {
		f.slope = (f.spec.Rate**p.LoadTo - f.rate) / p.Length.Seconds()
	}
	f.scheduleCall()
}

// scheduleCall schedules the next call, unless the phase ends first.
func (f *fleet) scheduleCall() {
	if f.rate == 0 && f.slope == 0 {
		return
	}
	w := f.world
	wait := time.Duration(min(f.untilNextCall()*float64(time.Second), longest))
	if w.now+wait < w.phaseEnd {
		w.after(wait, f, callOfAny, w.phase)
	}
}

// untilNextCall returns the seconds until the next call: until the rate adds up to a drawn number. If the rate falls to 0
// first, that never happens.
func (f *fleet) untilNextCall() float64 {
	sum := f.arrivals.ExpFloat64()
	if f.slope == 0 {
		return sum / f.rate
	}
	rate := f.rate + f.slope*(f.world.now-f.entered).Seconds()
	square := rate*rate + 2*f.slope*sum
	if square < 0 {
		return math.Inf(1)
	}
	return 2 * sum / (rate + math.Sqrt(square))
}

// startThinking starts the clients of a fleet that thinks as if they had been calling for a long time.
func (f *fleet) startThinking() {
	if f.spec.Think == nil {
		return
	}
	for i := range f.clients {
		wait := time.Duration(f.arrivals.Float64() * float64(f.spec.Think.Mean()))
		f.world.after(wait, f, callOfOne, uint32(i))
	}
}

// endCall records the end of a call. A client that thinks then schedules another one.
func (l *link) endCall(c *call, end *attempts.End, ok bool) {
	f := l.fleet
	if f == nil {
		return
	}
	f.counts.countEnd(c, end, ok)
	if f.spec.Think != nil {
		f.world.after(f.spec.Think.sample(f.arrivals), f, callOfOne, uint32(c.client))
	}
}

// decided records a decision.
func (l *link) decided(c *call, d decision.Decision) {
	if f := l.fleet; f != nil {
		f.counts.decided(c, d)
	}
}
