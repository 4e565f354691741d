// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stagger-go/stagger/testserver"
)

// storm is one kind of trouble, the same for every client.
type storm struct {
	name           string
	what           string // in a line
	phases         []phase
	attemptTimeout time.Duration // of the clients that have such a thing; 0: none
	services       int           // in a chain; those before the last call the next; 0: one
	workers        int           // of each backend; 0: 5
	deadline       time.Duration // of each call; 0: 1 s
	target         target
}

// phase is a part of a storm.
type phase struct {
	kind   kind
	length time.Duration
	load   float64 // calls per second as a part of the capacity
	step   step    // nil: every backend is well
}

// kind says what a phase counts for.
type kind int

const (
	trouble kind = iota
	leadIn       // before the trouble: not counted, so that it does not hide what comes after
	after        // the trouble is over, and the time to recover begins
)

func (k kind) String() string {
	return [...]string{trouble: "trouble", leadIn: "lead-in", after: "after"}[k]
}

// step is what a backend does with each request; queue is the work that it has to do for one.
type step func(backend int, queue *testserver.Queue) testserver.Step

func well(_ int, queue *testserver.Queue) testserver.Step { return testserver.OK().Through(queue) }

// shape is how the servers of each service are built.
type shape struct {
	backends int
	workers  int           // of each backend
	service  time.Duration // of each request
	queue    int           // requests that may wait at each backend
}

// capacity is in requests per second, of all backends together.
func (s shape) capacity() float64 {
	return float64(s.backends*s.workers) / s.service.Seconds()
}

// shape has a capacity of 1000 requests per second, of each service of a storm that does not say
// otherwise. The queue of a backend holds 1.5 s of work, more than any call waits there: nothing but
// time bounds what waits in it, and what nobody waits for any more is served all the same.
func (s storm) shape() shape {
	workers := cmp.Or(s.workers, 5)
	return shape{backends: 4, workers: workers, service: serviceTime, queue: 75 * workers}
}

// depth is how many services a call may reach.
func (s storm) depth() int { return max(s.services, 1) }

func (s storm) callTimeout() time.Duration { return cmp.Or(s.deadline, time.Second) }

const ms = time.Millisecond

const serviceTime = 20 * ms // of every request

// length is that of all phases.
func (s storm) length() time.Duration {
	var sum time.Duration
	for _, p := range s.phases {
		sum += p.length
	}
	return sum
}

// from is when the storm begins to count.
func (s storm) from() time.Duration { return s.until(leadIn) }

// over is when the trouble is over.
func (s storm) over() time.Duration { return s.until(leadIn, trouble) }

// overloads reports whether there are more calls than the servers can serve.
func (s storm) overloads() bool {
	return slices.ContainsFunc(s.phases, func(p phase) bool { return p.load > 1 })
}

// until is how long the phases at the beginning take that are of these kinds.
func (s storm) until(kinds ...kind) time.Duration {
	var at time.Duration
	for _, p := range s.phases {
		if !slices.Contains(kinds, p.kind) {
			break
		}
		at += p.length
	}
	return at
}

// method is the one that is called: the policy file has one for each attempt timeout.
func (s storm) method() string {
	if s.attemptTimeout == 0 {
		return service + "Get"
	}
	return fmt.Sprintf("%sGetIn%dms", service, s.attemptTimeout.Milliseconds())
}

const service = "/stagger.storm.v1.Shop/"

// terms says what holds for the calls of a storm.
func (s storm) terms() string {
	text := "No attempt timeouts"
	if s.attemptTimeout > 0 {
		text = fmt.Sprintf("Attempt timeouts of %v", s.attemptTimeout)
	}
	if s.depth() > 1 {
		text += fmt.Sprintf(", %d services, the last of which serves %.0f requests/s, the others twice as many", s.depth(), s.shape().capacity())
	}
	return fmt.Sprintf("%s; a call ends after %v.", text, s.callTimeout())
}
