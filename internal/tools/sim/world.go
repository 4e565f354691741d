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
	eventQueue

	scenario   *Scenario
	services   []*service
	fleets     []*fleet
	phase      uint32        // counted from 1
	phaseEnd   time.Duration // of this phase
	from       time.Duration // when the lead-in is over
	recovers   time.Duration // when the trouble is over
	until      time.Duration // when the last phase ends
	partLength time.Duration // of the recovery's window
	filled     int           // buckets that are complete
	free       []*call       // memory of calls that have ended
}

// The events of a world.
const (
	phaseEnds eventKind = iota
	bucketEnds
)

// handle implements [handler].
func (w *world) handle(kind eventKind, _ uint32) {
	if kind == phaseEnds {
		w.enterPhase()
		return
	}
	w.fillBucket()
}

// play lets everything happen. The calls that run at the end of the last phase are waited for.
func (w *world) play(ctx context.Context, progress func(done time.Duration)) error {
	w.enterPhase()
	if w.buckets() > 0 {
		w.after(w.scenario.Bucket, w, bucketEnds, 0)
	}
	for _, f := range w.fleets {
		f.start()
	}
	for w.next() {
		if w.handled%(1<<16) != 0 {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if progress != nil {
			progress(min(w.now, w.until))
		}
	}
	return nil
}

// enterPhase begins the next phase.
func (w *world) enterPhase() {
	w.phase++
	if int(w.phase) > len(w.scenario.Phases) {
		return
	}
	p := &w.scenario.Phases[w.phase-1]
	w.phaseEnd = w.now + p.Length
	for _, s := range w.services {
		s.enter(p)
	}
	for _, f := range w.fleets {
		f.enter(p)
	}
	w.after(p.Length, w, phaseEnds, 0)
}

// buckets is how many are told of: those that end before the last phase does.
func (w *world) buckets() int { return int(w.until / w.scenario.Bucket) }

// fillBucket completes a bucket.
func (w *world) fillBucket() {
	for _, s := range w.services {
		s.counts.held[w.filled] = s.held()
		s.counts.capacity[w.filled] = s.capacity()
	}
	w.filled++
	if w.filled < w.buckets() {
		w.after(w.scenario.Bucket, w, bucketEnds, 0)
	}
}

// addTo counts something in the bucket of a time. What is after the last bucket is not told of.
func (w *world) addTo(buckets []int, at time.Duration) {
	if i := int(at / w.scenario.Bucket); i < len(buckets) {
		buckets[i]++
	}
}

// recoveryPart is the place of a time after the trouble; negative before.
func (w *world) recoveryPart(at time.Duration) int {
	if at < w.recovers {
		return -1
	}
	return int((at - w.recovers) / w.partLength)
}

// freeCall is memory for a call.
func (w *world) freeCall() *call {
	last := len(w.free) - 1
	if last < 0 {
		return new(call)
	}
	c := w.free[last]
	w.free = w.free[:last]
	return c
}

// release takes back the memory of a call that has ended. What was scheduled for that call is stale.
func (w *world) release(c *call) {
	c.life++
	c.timer++
	c.parent = nil
	w.free = append(w.free, c)
}

type rng = rand.Rand

// random is the n-th source of chance of a run. Each is independent of what the others draw.
func random(seed, n uint64) *rng {
	return rand.New(rand.NewPCG(seed, n))
}
