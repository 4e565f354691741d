// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// ConcurrentConfig limits the extra attempts in flight, like Envoy's retry budgets:
//
//	extra attempts in flight ≤ max(Min, Percent of the calls in flight)
//
// An extra attempt is in flight from its withdrawal, so also while it waits, until it is settled; a call from its start to its
// end. It limits how much a service works on at a time, not the rate: if failures are fast, many extra attempts pass one after
// the other, and if backoffs are long, waiting calls count as in flight and so allow more of them. Time, and the kind and
// factor of a withdrawal, don't matter.
//
// Envoy's numbers are 20 % and 3. A policy file has them as defaults.
type ConcurrentConfig struct {
	// Percent of the calls in flight that may have an extra attempt in flight. More than 0, at most 1000, with at most four
	// decimals, which the budget keeps exactly.
	Percent float64
	// Min is how many extra attempts may be in flight with any number of calls. 0 to 1,000,000.
	Min int
}

func (c ConcurrentConfig) fields() []bounds.Field {
	return []bounds.Field{
		{Name: "Percent", Value: c.Percent, Low: 0.0001, High: 1000, Decimals: 4},
		{Name: "Min", Value: float64(c.Min), Low: 0, High: 1e6},
	}
}

func (c ConcurrentConfig) check() error { return bounds.Check(c.fields()) }

func (c ConcurrentConfig) budget() kind { return newConcurrent(c) }

// concurrentBudget bounds the extra attempts in flight. A call without extra attempts takes no lock, allocates nothing and
// rarely writes to a cache line that another core uses.
type concurrentBudget struct {
	indifferent

	calls counter // in flight
	rates atomic.Pointer[concurrentRates]

	_     [128]byte    // failing calls write below, all calls read above
	extra atomic.Int64 // attempts in flight
	tally
}

// concurrentRates are a ConcurrentConfig in millionths of an extra attempt.
type concurrentRates struct{ share, least int64 }

func newConcurrent(c ConcurrentConfig) *concurrentBudget {
	b := &concurrentBudget{calls: newCounter()}
	b.rates.Store(c.rates())
	return b
}

func (c ConcurrentConfig) rates() *concurrentRates {
	return &concurrentRates{share: micro(c.Percent) / 100, least: micro(float64(c.Min))}
}

// Reload changes the limits. It does not end attempts in flight: if there are more than the new limit, nothing is granted until
// enough of them have ended.
func (b *concurrentBudget) Reload(_ time.Duration, c Config) error {
	own, err := checked[ConcurrentConfig](c)
	if err != nil {
		return err
	}
	b.rates.Store(own.rates())
	return nil
}

// Kind returns the name of its kind.
func (*concurrentBudget) Kind() string { return "concurrent" }

// Drain does nothing: the budget has nothing stored.
func (*concurrentBudget) Drain(time.Duration) {}

// Fresh reports whether nothing is in flight.
func (b *concurrentBudget) Fresh(time.Duration) bool {
	return b.extra.Load() == 0 && b.calls.sum() == 0
}

// Start counts the call.
func (b *concurrentBudget) Start(now time.Duration) { b.calls.addToStripe(now, 1) }

// Finish ends the count of the call.
func (b *concurrentBudget) Finish(now time.Duration, _ Event) { b.calls.addToStripe(now, -1) }

// Withdraw grants an extra attempt within the limit.
func (b *concurrentBudget) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	for {
		extra := b.extra.Load()
		if extra >= b.limit(c.EarnedOnly) {
			b.denied.Add(1)
			return Permit{}, false
		}
		if b.extra.CompareAndSwap(extra, extra+1) {
			return Permit{Cause: c.Cause, at: now, Cost: 1}, true
		}
	}
}

// limit returns how many extra attempts may be in flight now; earnedOnly: without Min. Calls that begin and end while the counters are read, one after
// the other, can distort it.
func (b *concurrentBudget) limit(earnedOnly bool) int64 {
	r := b.rates.Load()
	earned := b.calls.sum() * r.share
	if !earnedOnly {
		earned = max(earned, r.least)
	}
	return earned / micro(1)
}

// Return ends an extra attempt that was never sent.
func (b *concurrentBudget) Return(time.Duration, Permit) { b.releaseExtra() }

// Settle ends an extra attempt.
func (b *concurrentBudget) Settle(time.Duration, Permit, bool) {
	b.granted.Add(1)
	b.releaseExtra()
}

func (b *concurrentBudget) releaseExtra() {
	for {
		extra := b.extra.Load()
		if extra == 0 || b.extra.CompareAndSwap(extra, extra-1) {
			return
		}
	}
}

// Balance returns how many more extra attempts may be in flight now.
func (b *concurrentBudget) Balance(time.Duration) float64 {
	return float64(max(b.limit(false)-b.extra.Load(), 0))
}

// Capacity returns how many extra attempts may be in flight with the current number of calls.
func (b *concurrentBudget) Capacity(time.Duration) float64 { return float64(b.limit(false)) }
