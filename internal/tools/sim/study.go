// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// Study is the experiment of "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015). Clients that start together
// each change the same row once. A client reads the row's version and writes on the condition that the version is unchanged.
// If another client was first, it waits and starts over. So at most one client succeeds in a round.
type Study struct {
	Clients []int // contenders, one experiment for each
	Repeats int   // of each experiment; the findings are averages
	Seed    uint64
	Network Distribution  // of each message
	Base    time.Duration // of the backoff: the wait after the n-th failure is Base·2ⁿ before jitter
	Cap     time.Duration
}

// AWS returns the study as published: 10 to 190 clients, a network of 10 ± 2 ms, waits from 5 ms to 2 s, each experiment a
// hundred times.
func AWS() Study {
	s := Study{
		Repeats: 100, Seed: 1, Base: 5 * time.Millisecond, Cap: 2 * time.Second,
		Network: Distribution{Shape: ShapeNormal, A: 10 * time.Millisecond, B: 2 * time.Millisecond},
	}
	for n := 10; n <= 190; n += 10 {
		s.Clients = append(s.Clients, n)
	}
	return s
}

// Finding is the average result of an experiment.
type Finding struct {
	Kind    string  `json:"kind"` // of the backoff: one of [StudyKinds]
	Clients int     `json:"clients"`
	Calls   float64 `json:"calls"`   // writes of all clients
	Seconds float64 `json:"seconds"` // until the last client succeeded
}

const exponential = "exponential" // without jitter

// StudyKinds returns the kinds of backoff in a study, in the order of the findings.
func StudyKinds() []string { return []string{"none", exponential, "equal", "decorrelated", "full"} }

// backoff returns the backoff of a kind, or nil.
func (s *Study) backoff(kind string) *policy.Backoff {
	jitter, ok := map[string]policy.Jitter{
		exponential: policy.JitterNone, "equal": policy.JitterEqual, "decorrelated": policy.JitterDecorrelated, "full": policy.JitterFull,
	}[kind]
	if !ok {
		return nil
	}
	return &policy.Backoff{Initial: s.Base, Max: s.Cap, Multiplier: 2, Jitter: jitter}
}

// Run runs the experiments: for each kind of backoff, all numbers of clients. progress is called like that of [Options]; it
// may be nil.
func (s *Study) Run(ctx context.Context, progress func(part float64)) ([]Finding, error) {
	if s.Repeats < 1 {
		return nil, fmt.Errorf("sim: study with %d repeats: want at least 1", s.Repeats)
	}
	var list []Finding
	for _, kind := range StudyKinds() {
		for _, n := range s.Clients {
			list = append(list, Finding{Kind: kind, Clients: n})
		}
	}
	o := Options{Progress: progress}
	err := o.each(len(list), func(i int, progress func(float64)) error {
		s.experiment(ctx, &list[i])
		progress(1)
		return context.Cause(ctx)
	})
	return list, err
}

func (s *Study) experiment(ctx context.Context, f *Finding) {
	for i := range s.Repeats {
		if ctx.Err() != nil {
			return
		}
		r := row{random: random(s.Seed, uint64(i*1000+f.Clients)), network: &s.Network}
		for range f.Clients {
			c := &contender{row: &r, backoff: s.backoff(f.Kind)}
			r.after(r.delay(), c, readArrived, 0)
		}
		for r.handleNext() {
		}
		f.Calls += float64(r.writes) / float64(s.Repeats)
		f.Seconds += r.now.Seconds() / float64(s.Repeats)
	}
}

// row is the row that all contenders change.
type row struct {
	eventQueue

	random  *rng
	network *Distribution
	version int
	writes  int
}

func (r *row) delay() time.Duration { return r.network.sample(r.random) }

// contender is one client.
type contender struct {
	row      *row
	backoff  *policy.Backoff
	version  int // last read
	failures int
	waited   time.Duration // last
	won      bool
}

// The events of a contender; messages take their time in between.
const (
	readArrived   eventKind = iota // at the row
	readAnswered                   // the contender knows the version
	writeArrived                   // at the row
	writeAnswered                  // the contender has the result
)

// handle implements [handler].
func (c *contender) handle(kind eventKind, _ uint32) {
	r := c.row
	switch kind {
	case readArrived:
		c.version = r.version
		r.after(r.delay(), c, readAnswered, 0)
	case readAnswered:
		r.after(r.delay(), c, writeArrived, 0)
	case writeArrived:
		r.writes++
		if c.won = c.version == r.version; c.won {
			r.version++
		}
		r.after(r.delay(), c, writeAnswered, 0)
	case writeAnswered:
		if !c.won {
			c.failures++
			r.after(c.nextWait()+r.delay(), c, readArrived, 0)
		}
	}
}

// nextWait returns the contender's wait after a failure. Like the published simulator, it counts failures from one before it
// raises to the power, so the first wait is twice the base.
func (c *contender) nextWait() time.Duration {
	if c.backoff == nil {
		return 0
	}
	c.waited = c.backoff.Delay(c.failures, c.waited, c.row.random.Float64())
	return c.waited
}
