// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet plays 10 to 1,000,000 clients in virtual time that make a thousand calls a second in all, and compares where the
// reserve of their budgets can come from: from each client itself, from nowhere, or from a pool that they lease it from,
// in two ways. Engine, budget and lease are those of production, and Redis answers by the arithmetic of its script.
package fleet

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The phases of a fleet: calm, random failures, calm, an outage, calm, both.
const (
	calm     = 15 * time.Second // longer than a window of the budgets, and than a lease
	trouble  = 30 * time.Second // that is counted
	tail     = 2 * time.Second  // of the trouble, so that counted calls
	randomly = 0.03             // part of the requests that fails
	// In the third trouble, all requests fail between these times.
	outageFrom, outageTo = 10 * time.Second, 20 * time.Second
)

// count is of calls that began in some time.
type count struct{ calls, requests, succeeded int }

func (c *count) add(requests int, ok bool) {
	if c == nil {
		return
	}
	c.calls++
	c.requests += requests
	if ok {
		c.succeeded++
	}
}

func (c *count) success() float64 { return float64(c.succeeded) / float64(c.calls) }
func (c *count) perCall() float64 { return float64(c.requests) / float64(c.calls) }

// figures are the results of a fleet in a scheme.
type figures struct {
	success float64 // of calls under random failures, 0 to 1
	outage  float64 // requests a call in an outage
	beside  float64 // success of calls before and after an outage amid random failures
	scripts float64 // a second at Redis, in the trouble that causes most of them
	waste   float64 // part of the granted tokens that were not spent, in random failures or an outage, whichever is more
}

// play takes a fleet through all phases.
func play(s scheme, clients int) (figures, error) {
	w, err := newWorld(s, clients)
	if err != nil {
		return figures{}, err
	}
	w.start()
	always := func(time.Duration) bool { return true }
	outage := func(since time.Duration) bool { return since >= outageFrom && since < outageTo }

	random := w.suffer(func(time.Duration) float64 { return randomly }, always)
	down := w.suffer(func(time.Duration) float64 { return 1 }, always)
	both := w.suffer(func(since time.Duration) float64 {
		if outage(since) {
			return 1
		}
		return randomly
	}, func(since time.Duration) bool { return !outage(since) })
	return figures{
		success: random.success(), outage: down.perCall(), beside: both.success(),
		scripts: max(random.scripts, down.scripts, both.scripts), waste: max(random.waste(), down.waste()),
	}, nil
}

// start starts the clients one after the other, and waits until Redis knows their number. Then they start to call.
func (w *world) start() {
	if w.scheme.reserve != nil {
		ramp := max(time.Minute, time.Duration(len(w.clients))*time.Second/500)
		for i := range w.clients {
			w.at(time.Duration(w.who.Float64()*float64(ramp)), func() { w.clients[i].lease = w.scheme.reserve(w) })
		}
		w.run(2 * ramp)
	}
	w.call()
}

// seenTrouble has the counts of one trouble.
type seenTrouble struct {
	count

	scripts        float64 // a second
	granted, spent int64
}

// waste returns the part of the granted tokens that were not spent.
func (s *seenTrouble) waste() float64 {
	if s.granted == 0 {
		return 0
	}
	return 1 - float64(s.spent)/float64(s.granted)
}

// suffer makes part of the requests fail, depending on the time since the trouble began, and counts some of the calls.
func (w *world) suffer(part func(time.Duration) float64, counts func(time.Duration) bool) seenTrouble {
	w.run(w.now + calm)
	var seen seenTrouble
	for i := range w.clients {
		if r := w.clients[i].lease; r != nil {
			*r.tokens() = tokens{}
		}
	}
	since, scripts := w.now, w.pool.scripts
	w.part = func() float64 { return part(w.now - since) }
	w.into = func() *count {
		if !counts(w.now - since) {
			return nil
		}
		return &seen.count
	}
	w.run(since + trouble)
	seen.scripts = float64(w.pool.scripts-scripts) / trouble.Seconds()
	w.into = nil
	w.run(w.now + tail)
	w.part = nil
	for i := range w.clients {
		if r := w.clients[i].lease; r != nil {
			t := r.tokens()
			seen.granted += t.granted
			seen.spent += min(t.spent, t.granted) // the cost of successful attempts is returned
		}
	}
	return seen
}
