// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// service is a service of a run.
type service struct {
	world    *world
	spec     *Service
	backends []*backend
	links    []*link // that each request makes calls over
	chance   *rand.Rand
	full     *answer
	drops    bool
	guards   bool
	tally    serviceTally
}

// effect is what is wrong with a backend.
type effect struct {
	hangs    bool
	down     *answer
	flaky    float64
	fails    *answer
	slowPart float64
	slowBy   *Distribution
	slower   float64
	workers  int
}

func (s *service) draw(d *Distribution) time.Duration { return d.draw(s.chance) }

// count notes that a request has arrived.
func (s *service) count(a *attempt) {
	w := s.world
	s.tally.requests++
	w.note(s.tally.arrivals, w.now)
	if w.now >= w.from {
		s.tally.counted++
		s.tally.peak.add(w.now - w.from)
	}
	if a.number > 1 {
		s.tally.extra++
	}
}

// enter makes the backends what they are in a phase.
func (s *service) enter(p *Phase) {
	for _, b := range s.backends {
		b.effect = effect{slower: 1, workers: s.spec.Workers}
		for i := range p.Faults {
			f := &p.Faults[i]
			if f.Service == s.spec.Name && (len(f.Backends) == 0 || slices.Contains(f.Backends, b.index)) {
				b.effect.add(f)
			}
		}
		b.fill()
	}
}

// add adds a fault to what is wrong already.
func (e *effect) add(f *Fault) {
	failure := newAnswer(status.New(f.Code, "fault"), pushback(f.Pushback))
	e.hangs = e.hangs || f.Hang
	if f.Down {
		e.down = failure
	}
	if f.Flaky > 0 {
		e.flaky, e.fails = f.Flaky, failure
	}
	if f.Slow != nil {
		e.slowPart, e.slowBy = f.Slow.Part, f.Slow.By
	}
	if f.Slower > 0 {
		e.slower *= f.Slower
	}
	if f.Workers != nil {
		e.workers = min(e.workers, *f.Workers)
	}
}

// refusal is what a backend says whose queue is full.
func refusal(code codes.Code) *status.Status { return status.New(code, "queue full") }

// stops is the trailer that forbids a retry.
var stops = metadata.Pairs(policy.PushbackTrailer, "-1")

// pushback is the trailer that asks for a delay.
func pushback(delay *time.Duration) metadata.MD {
	switch {
	case delay == nil:
		return nil
	case *delay < 0:
		return stops
	default:
		return metadata.Pairs(policy.PushbackTrailer, strconv.FormatInt(delay.Milliseconds(), 10))
	}
}

// capacity is how many requests the backends can serve in a second, as they are now.
func (s *service) capacity() float64 {
	var sum float64
	for _, b := range s.backends {
		if e := &b.effect; !e.hangs && e.down == nil {
			sum += float64(e.workers) / e.slower
		}
	}
	return sum / s.spec.Time.Mean().Seconds()
}

// held is how many requests are in the queues and with the workers.
func (s *service) held() int {
	n := 0
	for _, b := range s.backends {
		n += b.busy + b.queue.len() - b.gone
	}
	return n
}
