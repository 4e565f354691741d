// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	_ "embed" // retry.yaml
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

//go:embed retry.yaml
var policyFile []byte

const (
	method = "/stagger.fleet.v1.Orders/GetOrder"
	rate   = 1000.0 // calls in a second, of all clients together
)

// world is a fleet in virtual time. The times of calls, and their clients, depend only on a seed, so they are the same in
// every scheme.
type world struct {
	queue

	scheme    scheme
	policy    *decision.Policy
	config    balance.Config
	perSecond float64 // of the pool
	clients   []client
	part      func() float64 // of the requests that fails now; nil: none
	into      func() *count  // where a call counts that begins now; nil: nowhere
	pool      pool
	ideal     *ideal // replaces the pool; created

	arrivals, who, faults, jitter *rand.Rand
}

// client is one process.
type client struct {
	budget balance.Budget // created at its first call, as in a Retrier
	lease  reserve        // nil: it has its own reserve
}

// newWorld returns a fleet whose clients have not started.
func newWorld(s scheme, clients int) (*world, error) {
	set, err := policy.Parse("retry.yaml", policyFile)
	if err != nil {
		return nil, err
	}
	w := &world{scheme: s, policy: decision.New(set.Lookup(method).Spec()), clients: make([]client, clients)}
	ratio, _ := set.Config().Budgets[0].Config.(budget.RatioConfig)
	w.perSecond = ratio.MinPerSecond
	if s.reserve == nil {
		ratio.Fleet, ratio.MinPerSecond = "", s.perSecond
	}
	for i, r := range []**rand.Rand{&w.arrivals, &w.who, &w.faults, &w.jitter, &w.pool.chance} {
		*r = rand.New(rand.NewPCG(1, uint64(i)))
	}
	w.pool.world, w.pool.latency, w.pool.loss = w, s.latency, s.loss
	w.pool.rate = int64(w.perSecond * 1e6)
	w.config = inside.Config(ratio)
	if _, err := balance.New(w.config, leaseOf(nil)); err != nil {
		return nil, err
	}
	return w, nil
}

// budgetOf returns the budget that pays for a client's calls.
func (w *world) budgetOf(c *client) balance.Budget {
	if c.budget == nil {
		c.budget, _ = balance.New(w.config, leaseOf(c.lease)) // config was tried already
	}
	return c.budget
}

// leaseOf always returns this lease, whatever the pool.
func leaseOf(l balance.Lease) balance.LeaseOf {
	return func(string, float64) (balance.Lease, error) { return l, nil }
}

// call starts the next call, and schedules the one after.
func (w *world) call() {
	w.after(time.Duration(w.arrivals.ExpFloat64()/rate*float64(time.Second)), func() {
		var into *count
		if w.into != nil {
			into = w.into()
		}
		w.begin(&w.clients[w.who.IntN(len(w.clients))], into)
		w.call()
	})
}

// fails draws whether a request fails.
func (w *world) fails() bool { return w.part != nil && w.faults.Float64() < w.part() }

// seen returns the time and chance for the engine.
func (w *world) seen() attempts.Now {
	return attempts.Now{At: w.now, Wall: time.Unix(0, int64(w.now)), Chance: w.jitter.Float64()}
}
