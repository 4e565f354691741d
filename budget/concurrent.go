// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"time"
)

// ConcurrentConfig is what a [Concurrent] is made from. The fields are taken as they are, zeros too:
// start from [DefaultConcurrent] and change what differs.
type ConcurrentConfig struct {
	// Percent of the calls in flight that may have an extra attempt in flight. More than 0, at most
	// 1000, with at most four decimals, which the budget keeps exactly.
	Percent float64
	// Min is how many extra attempts may be in flight however few calls are. 0 to 1,000,000.
	Min int
}

// DefaultConcurrent is 20 % and 3: Envoy's numbers.
func DefaultConcurrent() ConcurrentConfig { return ConcurrentConfig{Percent: 20, Min: 3} }

// Name implements [Config].
func (ConcurrentConfig) Name() string { return "concurrent" }

// Fields implements [Config].
func (c ConcurrentConfig) Fields() []Field {
	return []Field{
		{Name: "Percent", Value: c.Percent, Low: 0.0001, High: 1000, Decimals: 4},
		{Name: "Min", Value: float64(c.Min), Low: 0, High: 1e6},
	}
}

// Check implements [Config].
func (c ConcurrentConfig) Check() error { return check(c.Fields()) }

func (c ConcurrentConfig) budget() Reloadable { return newConcurrent(c) }

// Concurrent allows so many extra attempts in flight at a time, after Envoy's retry budgets:
//
//	extra attempts in flight ≤ max(Min, Percent of the calls in flight)
//
// An extra attempt is in flight from its withdrawal, so while it waits too, until it is returned or
// settled; a call from Start to Finish. It bounds what a service must hold at a time, not what arrives:
// where failures are fast, many extra attempts pass one after the other, and where backoffs are long the
// calls that wait count as calls in flight and so allow more of them. The kind and the factor of a
// charge, and the time, do not matter.
//
// A call that needs no extra attempt takes no lock, allocates nothing and seldom writes to a cache line
// that another core uses. The zero value is not usable: see [NewConcurrent].
type Concurrent struct {
	calls counter // in flight
	rates atomic.Pointer[concurrentRates]

	_     [128]byte    // failing calls write below, all calls read above
	extra atomic.Int64 // attempts in flight
	tally
}

// concurrentRates are a ConcurrentConfig in millionths of an extra attempt.
type concurrentRates struct{ share, least int64 }

var _ Reloadable = (*Concurrent)(nil)

// NewConcurrent makes a budget with nothing in flight. The error is that of [ConcurrentConfig.Check].
func NewConcurrent(c ConcurrentConfig) (*Concurrent, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return newConcurrent(c), nil
}

func newConcurrent(c ConcurrentConfig) *Concurrent {
	b := &Concurrent{calls: newCounter()}
	b.rates.Store(c.rates())
	return b
}

func (c ConcurrentConfig) rates() *concurrentRates {
	return &concurrentRates{share: micro(c.Percent) / 100, least: micro(float64(c.Min))}
}

// Reload changes the limits. What is in flight stays, and its permits end it as ever: if that is more than
// the new limit, nothing is granted until enough has ended.
func (b *Concurrent) Reload(_ time.Duration, c Config) error {
	own, err := checked[ConcurrentConfig](c)
	if err != nil {
		return err
	}
	b.rates.Store(own.rates())
	return nil
}

// Drain does nothing: what is in flight is no balance.
func (*Concurrent) Drain(time.Duration) {}

// Fresh is true when nothing is in flight.
func (b *Concurrent) Fresh(time.Duration) bool { return b.extra.Load() == 0 && b.calls.sum() == 0 }

// Start counts the call.
func (b *Concurrent) Start(now time.Duration) { b.calls.add(now, 1) }

// Finish counts it no more.
func (b *Concurrent) Finish(now time.Duration, _ End) { b.calls.add(now, -1) }

// Fail does nothing: only what is in flight counts.
func (*Concurrent) Fail(time.Duration) {}

// Withdraw grants if one more extra attempt is within the limit.
func (b *Concurrent) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	for {
		extra := b.extra.Load()
		if extra >= b.limit() {
			b.denied.Add(1)
			return Permit{}, false
		}
		if b.extra.CompareAndSwap(extra, extra+1) {
			b.granted.Add(1)
			return Permit{Kind: c.Kind, At: now, Cost: 1}, true
		}
	}
}

// limit is how many extra attempts may be in flight now. It may be off by the share of calls that begin
// and end while the counters are read, one after the other.
func (b *Concurrent) limit() int64 {
	r := b.rates.Load()
	return max(b.calls.sum()*r.share, r.least) / micro(1)
}

// Return ends an extra attempt that was never sent.
func (b *Concurrent) Return(time.Duration, Permit) { b.end() }

// Settle ends an extra attempt.
func (b *Concurrent) Settle(time.Duration, Permit, bool) { b.end() }

func (b *Concurrent) end() {
	for {
		extra := b.extra.Load()
		if extra == 0 || b.extra.CompareAndSwap(extra, extra-1) {
			return
		}
	}
}

// Balance is how many more extra attempts may be in flight now.
func (b *Concurrent) Balance(time.Duration) float64 {
	return float64(max(b.limit()-b.extra.Load(), 0))
}

// Capacity is how many extra attempts may be in flight at a time, for the calls that are in flight now.
func (b *Concurrent) Capacity(time.Duration) float64 { return float64(b.limit()) }
