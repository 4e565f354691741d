// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
)

// Trace makes calls at given times by the first client of the first fleet, with the least jitter. It returns when requests
// arrived at the first service, and how long the calls took.
func Trace(t *testing.T, s *Scenario, begins []time.Duration) (requests, took []time.Duration) {
	t.Helper()
	w, err := newWorld(s, &Variant{}, s.Seed)
	if err != nil {
		t.Fatal(err)
	}
	w.fleets[0].links[0].jitter = rand.New(least{})
	tr := &tracer{link: w.fleets[0].links[0]}
	for _, at := range begins {
		w.after(at, tr, 0, 0)
	}
	took = make([]time.Duration, len(begins))
	w.enterPhase()
	for seen := 0; w.handleNext(); {
		for ; seen < w.services[0].counts.requests; seen++ {
			requests = append(requests, w.now)
		}
		for i, c := range tr.calls {
			if c.over() && took[i] == 0 {
				took[i] = max(w.now-begins[i], 1)
			}
		}
	}
	for i := range took {
		took[i] = took[i].Truncate(2) // what took no time
	}
	return requests, took
}

// callRef refers to a call that may have ended meanwhile.
type callRef struct {
	call *call
	life uint32
}

func (c *call) ref() callRef { return callRef{c, c.life} }

func (r *callRef) over() bool { return r.call.life != r.life }

type tracer struct {
	link  *link
	calls []callRef
}

func (tr *tracer) handle(eventKind, uint32) {
	c := tr.link.newCall(0, nil, attempts.Never)
	tr.calls = append(tr.calls, c.ref())
	c.startCall()
}

// least is a source of random numbers that always returns 0.
type least struct{}

func (least) Uint64() uint64 { return 0 }
