// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// world is one run of a scenario.
type world struct {
	agenda

	scenario *Scenario
	services []*service
	sources  []*source
	phase    uint32        // counted from 1
	turn     time.Duration // when the phase ends
	from     time.Duration // when the lead-in is over
	over     time.Duration // when the trouble is
	until    time.Duration // when the last phase ends
	part     time.Duration // of the recovery's window
	filled   int           // buckets that are complete
	free     []*call       // that have ended
}

// buckets is how many are told of: those that end before the last phase does.
func (w *world) buckets() int { return int(w.until / w.scenario.Bucket) }

// note counts something that was at a time. What was after the last bucket is not told of.
func (w *world) note(list []int, at time.Duration) {
	if i := int(at / w.scenario.Bucket); i < len(list) {
		list[i]++
	}
}

// since is the place of a time after the trouble; negative before.
func (w *world) since(at time.Duration) int {
	if at < w.over {
		return -1
	}
	return int((at - w.over) / w.part)
}

// act implements [actor]: the world's own events are the turns from phase to phase, and the ends of buckets.
func (w *world) act(what what, _ uint32) {
	if what == turns {
		w.enter()
		return
	}
	w.fill()
}

// The events of the world.
const (
	turns what = iota
	fills
)

// enter begins the next phase.
func (w *world) enter() {
	w.phase++
	if int(w.phase) > len(w.scenario.Phases) {
		return
	}
	p := &w.scenario.Phases[w.phase-1]
	w.turn = w.now + p.Length
	for _, s := range w.services {
		s.enter(p)
	}
	for _, s := range w.sources {
		s.enter(p)
	}
	w.in(p.Length, w, turns, 0)
}

// fill completes a bucket.
func (w *world) fill() {
	for _, s := range w.services {
		s.tally.held[w.filled] = s.held()
		s.tally.capacity[w.filled] = s.capacity()
	}
	w.filled++
	if w.filled < w.buckets() {
		w.in(w.scenario.Bucket, w, fills, 0)
	}
}

// newCall is memory for a call.
func (w *world) newCall() *call {
	last := len(w.free) - 1
	if last < 0 {
		return new(call)
	}
	c := w.free[last]
	w.free = w.free[:last]
	return c
}

// release takes back the memory of a call that has ended. Events and deadlines of it are void.
func (w *world) release(c *call) {
	c.life++
	c.timer++
	c.parent = nil
	w.free = append(w.free, c)
}

// play lets everything happen. The calls that run at the end of the last phase are waited for.
func (w *world) play(ctx context.Context, tell func(done time.Duration)) error {
	w.enter()
	if w.buckets() > 0 {
		w.in(w.scenario.Bucket, w, fills, 0)
	}
	for _, s := range w.sources {
		s.wakeUp()
	}
	for w.next() {
		if w.passed%(1<<16) != 0 {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if tell != nil {
			tell(min(w.now, w.until))
		}
	}
	return nil
}

// chance is a source of numbers of its own, the n-th, so that what one draws changes nothing for another.
func chance(seed, n uint64) *rng {
	return rand.New(rand.NewPCG(seed, n)) //nolint:gosec // a run must repeat
}

type rng = rand.Rand
