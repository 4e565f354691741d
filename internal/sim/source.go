// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// source is a fleet of a run: where calls come from.
type source struct {
	world    *world
	spec     *Fleet
	link     *link
	arrivals *rand.Rand // of the times alone, so that they are the same whatever becomes of the calls
	chooses  *rand.Rand // which client calls
	rate     float64    // per second, now
	tally    fleetTally
}

// The events of a source.
const (
	comes what = iota // a call of any client
	calls             // a call of the client with the event's number
)

// act implements [actor].
func (s *source) act(what what, number uint32) {
	switch {
	case what == comes && number == s.world.phase:
		s.call(s.client())
		s.expect(s.world.now)
	case what == calls && s.world.now < s.world.until:
		s.call(int(number))
	}
}

func (s *source) client() int {
	if n := len(s.link.processes.list); n > 1 {
		return s.chooses.IntN(n)
	}
	return 0
}

func (s *source) call(client int) {
	c := s.link.begin(client, nil, attempts.Never)
	s.tally.begins(c)
	c.first()
}

// enter draws the calls of a phase: the exponential has no memory, so each may begin anew.
func (s *source) enter(p *Phase) {
	s.rate = s.spec.Rate * p.Load
	s.expect(s.world.now)
}

// expect puts down the next call after at, unless the phase ends before.
func (s *source) expect(at time.Duration) {
	if s.rate == 0 {
		return
	}
	wait := min(s.arrivals.ExpFloat64()/s.rate*float64(time.Second), longest)
	at += time.Duration(wait)
	if at < s.world.turn {
		s.world.in(at-s.world.now, s, comes, s.world.phase)
	}
}

// wakeUp lets the clients of a fleet that thinks begin, as if they had been calling for long.
func (s *source) wakeUp() {
	if s.spec.Think == nil {
		return
	}
	for i := range s.link.processes.list {
		wait := time.Duration(s.arrivals.Float64() * float64(s.spec.Think.Mean()))
		s.world.in(wait, s, calls, uint32(i))
	}
}

// ended takes in that a call has ended.
func (l *link) ended(c *call, end attempts.End, ok bool) {
	s := l.source
	if s == nil {
		return
	}
	s.tally.ends(c, &end, ok)
	if s.spec.Think != nil {
		s.world.in(s.spec.Think.draw(s.arrivals), s, calls, uint32(c.client)) //nolint:gosec // clients are bounded
	}
}

// tell takes in a decision.
func (l *link) tell(c *call, d policy.Decision) {
	if s := l.source; s != nil {
		s.tally.decided(c, d)
	}
}
