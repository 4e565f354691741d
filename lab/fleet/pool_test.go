// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/lease"
)

// timeout is how long a client waits for Redis, as in redisbudget.
const timeout = 500 * time.Millisecond

// pool is Redis, and the network between.
type pool struct {
	world   *world
	bucket  lease.Bucket
	rate    int64
	latency time.Duration // of a request and its answer, on average
	loss    float64       // part of the requests that fails: half of them on the way back
	scripts int           // that have run
	chance  *rand.Rand
}

// ask sends a request, and later calls either answered or failed.
func (p *pool) ask(r lease.Request, granted *int64, answered func(lease.Answer), failed func()) {
	w, lost := p.world, p.chance.Float64()
	if lost < p.loss {
		w.after(timeout, failed)
	}
	if lost < p.loss/2 {
		return
	}
	// Half of the latency is constant, and the rest is random: one in a hundred takes three times the average.
	there := time.Duration((0.5 + 0.5*p.chance.ExpFloat64()) * float64(p.latency) / 2)
	w.after(there, func() {
		p.scripts++
		a := p.bucket.AnswerRequest(w.now, p.rate, r)
		*granted += a.Tokens
		if lost >= p.loss {
			w.after(there, func() { answered(a) })
		}
	})
}
