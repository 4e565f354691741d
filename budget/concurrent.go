// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
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
	calls    counters
	settings atomic.Pointer[concurrency]

	_      [128]byte // failing calls write below, all calls read above
	extra  atomic.Int64
	denied atomic.Uint64
}

// concurrency is how much a Concurrent allows, in micro-tokens.
type concurrency struct{ share, least int64 }

var _ Budget = (*Concurrent)(nil)

// NewConcurrent makes a budget with nothing in flight. The error names every field that is out of bounds,
// its value and the bounds.
func NewConcurrent(c ConcurrentConfig) (*Concurrent, error) {
	b := &Concurrent{calls: newCounters()}
	if err := b.Reload(0, c); err != nil {
		return nil, err
	}
	return b, nil
}

// Reload changes the limits. What is in flight stays: if that is more than the new limit, nothing is
// granted until enough has ended. A config that is out of bounds is refused, and changes nothing.
func (b *Concurrent) Reload(_ time.Duration, c ConcurrentConfig) error {
	var least error
	if c.Min < 0 || c.Min > 1e6 {
		least = fmt.Errorf("budget: Min %d: must be 0 to 1000000", c.Min)
	}
	if err := errors.Join(checkNumber("Percent", c.Percent, 0.0001, 1000, 4), least); err != nil {
		return err
	}
	b.settings.Store(&concurrency{share: micro(c.Percent) / 100, least: int64(c.Min) * token})
	return nil
}

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
			return Permit{Charge: c, At: now, Cost: 1}, true
		}
	}
}

// limit is how many extra attempts may be in flight now. It may be off by the share of calls that begin
// and end while the counters are read, one after the other.
func (b *Concurrent) limit() int64 {
	s := b.settings.Load()
	return max(b.calls.sum()*s.share, s.least) / token
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

// Denied is how many withdrawals have been refused so far.
func (b *Concurrent) Denied() uint64 { return b.denied.Load() }
