// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/decision"
)

// service is a [Service] in a run.
type service struct {
	world     *world
	spec      *Service
	backends  []*backend
	links     []*link // for the calls of each request
	random    *rng
	queueFull *answer
	drops     bool // see [AbandonedDrop]
	guards    bool // it runs the chain guard
	counts    serviceCounts
	cached    float64       // part of the cache's entries that are there
	cachedAt  time.Duration // at this time
}

// faults are the current faults of a backend.
type faults struct {
	hangs    bool
	down     *answer
	flaky    []flaky
	slowPart float64
	slowBy   *Distribution
	slower   float64
	workers  int
}

// flaky is the failure of a part of the requests.
type flaky struct {
	part   float64
	fails  *answer
	atOnce bool // without work
}

// drawFailure returns how a request fails, or nil.
func (s *service) drawFailure(list []flaky) *flaky {
	for i := range list {
		if s.random.Float64() < list[i].part {
			return &list[i]
		}
	}
	return nil
}

// drawWork returns how long a worker takes for a request, by its entry in the cache.
func (s *service) drawWork(a *attempt) time.Duration {
	c := s.spec.Cache
	if c == nil {
		return s.drawTime(s.spec.Time)
	}
	s.cached *= math.Exp(-float64(s.world.now-s.cachedAt) / float64(c.TTL))
	s.cachedAt = s.world.now
	if a.missed = s.random.Float64() >= s.cached; a.missed {
		return s.drawTime(s.spec.Time)
	}
	return s.drawTime(c.Hit)
}

// fillCache keeps what a request has found, if its client waits for it.
func (s *service) fillCache(a *attempt) {
	if a.missed && a.call != nil && a.fails == nil {
		s.cached += (1 - s.cached) / float64(s.spec.Cache.Entries)
	}
}

func (s *service) drawTime(d *Distribution) time.Duration { return d.Sample(s.random) }

// countRequest counts an arrived request.
func (s *service) countRequest(a *attempt) {
	w, c := s.world, &s.counts
	c.requests++
	w.addTo(c.arrivals, w.now)
	if w.now >= w.from {
		c.counted++
		c.peak.countArrival(w.now - w.from)
	}
	if a.number > 1 {
		c.extra++
	}
}

// applyFaults gives the backends the faults of a phase.
func (s *service) applyFaults(p *Phase) {
	for _, b := range s.backends {
		wasDown := b.faults.down != nil
		b.faults, b.byMethod = faults{slower: 1, workers: s.spec.Workers}, nil
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Method == "" && f.hits(b) {
				b.faults.addFault(f)
				if f.Flush {
					s.cached = 0
				}
			}
		}
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Method != "" && f.hits(b) {
				b.addMethodFault(f)
			}
		}
		if b.faults.down != nil && !wasDown {
			b.starts++
		}
		b.fillWorkers()
	}
}

// hits reports whether a backend has the fault.
func (f *Fault) hits(b *backend) bool {
	return f.Service == b.service.spec.Name && (len(f.Backends) == 0 || slices.Contains(f.Backends, b.index))
}

// addMethodFault adds a fault of one method to those of the backend.
func (b *backend) addMethodFault(spec *Fault) {
	if b.byMethod == nil {
		b.byMethod = map[string]*faults{}
	}
	f := b.byMethod[spec.Method]
	if f == nil {
		f = new(b.faults)
		f.flaky = slices.Clone(f.flaky)
		b.byMethod[spec.Method] = f
	}
	f.addFault(spec)
}

// addFault adds a fault to the current ones.
func (f *faults) addFault(spec *Fault) {
	failure := newAnswer(status.New(spec.Code, "fault"), pushback(spec.Pushback))
	f.hangs = f.hangs || spec.Hang
	if spec.Down {
		f.down = failure
	}
	if spec.Flaky > 0 {
		f.flaky = append(f.flaky, flaky{spec.Flaky, failure, spec.AtOnce})
	}
	if spec.Slow != nil {
		f.slowPart, f.slowBy = spec.Slow.Part, spec.Slow.By
	}
	if spec.Slower > 0 {
		f.slower *= spec.Slower
	}
	if spec.Workers != nil {
		f.workers = min(f.workers, *spec.Workers)
	}
}

// pushback returns the trailer that asks for a delay.
func pushback(delay *time.Duration) metadata.MD {
	switch {
	case delay == nil:
		return nil
	case *delay < 0:
		return pushbackStop
	default:
		return metadata.Pairs(decision.PushbackTrailer, strconv.FormatInt(delay.Milliseconds(), 10))
	}
}

// capacity returns how many requests per second the backends can serve now.
func (s *service) capacity() float64 {
	var sum float64
	for _, b := range s.backends {
		if f := &b.faults; !f.hangs && f.down == nil {
			sum += float64(f.workers) / f.slower
		}
	}
	took := s.spec.Time.Mean().Seconds()
	if c := s.spec.Cache; c != nil {
		took += s.cached * (c.Hit.Mean().Seconds() - took)
	}
	return sum / took
}

// inHand returns how many requests are in the queues and with the workers.
func (s *service) inHand() int {
	n := 0
	for _, b := range s.backends {
		n += b.inHand()
	}
	return n
}
